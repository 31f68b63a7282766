from project.requests import WsgiApplication
from project.start import load_pages, start

start()
application = WsgiApplication()
load_pages()
