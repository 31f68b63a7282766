from django.core.wsgi import get_wsgi_application

from project.start import load_pages, start

start()
application = get_wsgi_application()
load_pages()
