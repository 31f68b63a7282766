from django.core.asgi import get_asgi_application

from project.start import load_pages, start

start()
application = get_asgi_application()
load_pages()
