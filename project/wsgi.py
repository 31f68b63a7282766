from project.start import WsgiApplication, load_pages, start

start()
application = WsgiApplication()
load_pages()
