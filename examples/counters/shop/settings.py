from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent
DEBUG = True
SECRET_KEY = "only for development"
ROOT_URLCONF = "shop.urls"
INSTALLED_APPS = ["dynamo", "sequences"]
