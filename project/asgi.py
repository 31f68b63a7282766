from project.requests import AsgiApplication
from project.start import load_pages, start

start()
application = AsgiApplication()
load_pages()
