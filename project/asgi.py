from project.start import AsgiApplication, load_pages, start

start()
application = AsgiApplication()
load_pages()
