# The image of the server and of Spark's master and workers: docker compose build, or docker build .
# They share it, as Spark's Python workers run our code: Python and each package are the same.

# by digest: see "Compose" in docs/operations.md
ARG PYTHON_IMAGE=python:3.12-slim-bookworm
FROM ${PYTHON_IMAGE}

# a new volume takes owner and mode from the folders that are made here
RUN apt-get update \
 && apt-get install -y --no-install-recommends openjdk-17-jre-headless procps \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home --uid 1000 ksql \
 && install -d -m 0700 -o ksql -g ksql /var/lib/ksql /var/lib/spark

ENV KSQL_CACHE_DIR=/opt/ksql-cache PYTHONUNBUFFERED=1
WORKDIR /opt/ksql
COPY requirements ./requirements
RUN pip install --no-cache-dir --require-hashes -r requirements/build.lock \
 && pip install --no-cache-dir --require-hashes --no-build-isolation -r requirements/runtime.lock
COPY . .
RUN pip install --no-cache-dir --no-deps --no-build-isolation . \
 && python -m server.tools.fetch

USER 1000:1000
WORKDIR /var/lib/ksql
