# Two images from one file:
#   docker build --target controller -t headroom-controller .
#   docker build --target gpu-server -t headroom-gpu-server .
# Both run without a shell, as an ordinary user, and with a read-only root: what is written goes to /var/lib/headroom.
ARG NODE_IMAGE=node:24-slim

# ---- what is compiled: dist/ and the guard ----
FROM ${NODE_IMAGE} AS build
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev make && rm -rf /var/lib/apt/lists/*
WORKDIR /src
# Packages change less often than sources, so their layer is kept. The compiler is among the optional ones.
COPY package.json package-lock.json Makefile ./
COPY cli/require-node.mjs cli/
RUN make install
COPY . .
RUN make build && make guard

# ---- packages of the controller: neither development nor optional ones ----
FROM ${NODE_IMAGE} AS controller-packages
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --omit=optional --ignore-scripts --no-fund --no-audit

# ---- packages of a GPU server: koffi too, which calls the driver; Node itself is in the image already ----
FROM ${NODE_IMAGE} AS gpu-server-packages
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --ignore-scripts --no-fund --no-audit && rm -rf node_modules/node-linux-* node_modules/.bin/node

FROM ${NODE_IMAGE} AS base
ENV NODE_ENV=production
WORKDIR /app
COPY package.json ./
COPY --from=build /src/dist ./dist
# A volume that is made for a folder takes its owner over.
RUN mkdir -p /var/lib/headroom /etc/headroom/broker /etc/headroom/admin && \
    chown 1000:1000 /var/lib/headroom /etc/headroom/broker /etc/headroom/admin
VOLUME /var/lib/headroom
USER 1000:1000
ENTRYPOINT ["node", "dist/cli/main.js"]

# ---- the controller ----
FROM base AS controller
COPY --from=controller-packages /app/node_modules ./node_modules
COPY scenarios ./scenarios
# From outside the container, so it wants a token: CONTROLLER_ADMIN_TOKEN_FILE (docs/security.md).
ENV CONTROLLER_HTTP_HOST=0.0.0.0 CONTROLLER_HTTP_PORT=30080 CONTROLLER_DATA_DIR=/var/lib/headroom
EXPOSE 30080
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.CONTROLLER_HTTP_PORT}/livez`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
CMD ["serve"]

# ---- a GPU server ----
FROM base AS gpu-server
COPY --from=gpu-server-packages /app/node_modules ./node_modules
# It is newer than its sources in dist/, so that nobody looks for a compiler.
COPY --from=build /src/gpu-server/guard/build ./dist/gpu-server/guard/build
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
CMD ["gpu-server"]
