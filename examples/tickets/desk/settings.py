from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent
DEBUG = True
SECRET_KEY = "only for development"
INSTALLED_APPS = ["dynamo", "sequences", "tickets"]
