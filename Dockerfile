# The site, for production. See docs/deployment.md#containers.
FROM python:3.13-slim AS build
WORKDIR /src
COPY . .
RUN deploy/container/build.sh /srv/site

FROM python:3.13-slim
# Fonts of documents in further scripts: apt-get install fonts-noto-core.
RUN useradd --system --uid 10001 --home-dir /srv/site --shell /usr/sbin/nologin site
WORKDIR /srv/site
COPY --from=build /srv/site /srv/site
COPY deploy/container/start.sh deploy/container/health.py /srv/container/
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 10001
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=4s --start-period=20s CMD [".venv/bin/python", "/srv/container/health.py"]
CMD ["/srv/container/start.sh"]
