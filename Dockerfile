# Two images from one file:
#   docker build --target controller -t headroom-controller .
#   docker build --target gpu-server -t headroom-gpu-server .
# Both run without a shell and with a read-only root file system; they write to /var/lib/headroom only. The
# controller runs as an ordinary user. A GPU server runs as root with named capabilities only, because it runs
# each attempt of a task as a separate user (docker-compose.yml, docs/security.md).
ARG NODE_IMAGE=node:24-slim
ARG GO_IMAGE=golang:1.26-alpine

# ---- compilation: dist/ and the guard ----
FROM ${NODE_IMAGE} AS build
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev make && \
    rm -rf /var/lib/apt/lists/*
WORKDIR /src
# Packages change less often than sources, so they have a layer of their own. The compiler is an optional
# package.
COPY package.json package-lock.json Makefile ./
COPY ui/package.json ui/
COPY tools/node/package.json tools/node/
COPY cli/require-node.mjs cli/
RUN make install
COPY . .
RUN make build && make guard

# ---- the helper for probes of pods: static, because it is copied into containers of any image ----
FROM ${GO_IMAGE} AS probe-helper
WORKDIR /src
COPY operator/probe-helper ./
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o /headroom-probe-helper .

# ---- packages of the controller: without optional packages, the packages of the page and Node ----
FROM ${NODE_IMAGE} AS controller-packages
WORKDIR /app
COPY package.json package-lock.json ./
COPY ui/package.json ui/
COPY tools/node/package.json tools/node/
COPY tools/package/strip-packages.ts tools/package/
RUN npm ci --omit=dev --omit=optional --workspaces=false --ignore-scripts --no-fund --no-audit && \
    node tools/package/strip-packages.ts . --prune

# ---- packages of a GPU server: with koffi, which calls the driver ----
FROM ${NODE_IMAGE} AS gpu-server-packages
WORKDIR /app
COPY package.json package-lock.json ./
COPY ui/package.json ui/
COPY tools/node/package.json tools/node/
COPY tools/package/strip-packages.ts tools/package/
RUN npm ci --omit=dev --workspaces=false --ignore-scripts --no-fund --no-audit && \
    node tools/package/strip-packages.ts . --prune

FROM ${NODE_IMAGE} AS base
ENV NODE_ENV=production
WORKDIR /app
COPY package.json ./
COPY --from=build /src/dist ./dist
# A new volume takes its owner from the folder. Keys are created in broker/keys and copied to one folder per
# container.
RUN mkdir -p /var/lib/headroom /etc/headroom/admin /etc/headroom/broker/keys /etc/headroom/gateway \
      /etc/headroom/key /etc/headroom/keys/controller /etc/headroom/keys/controller-2 \
      /etc/headroom/keys/gpu-server /etc/headroom/keys/sim /etc/headroom/secrets && \
    chown -R 1000:1000 /var/lib/headroom /etc/headroom
USER 1000:1000
ENTRYPOINT ["node", "--", "dist/cli/main.js"]

# ---- the controller ----
FROM base AS controller
COPY --from=controller-packages /app/node_modules ./node_modules
COPY scenarios ./scenarios
VOLUME /var/lib/headroom
# Reachable from outside the container, so a token is required: CONTROLLER_ADMIN_TOKEN_FILE
# (docs/security.md).
ENV CONTROLLER_HTTP_HOST=0.0.0.0 CONTROLLER_HTTP_PORT=30080 CONTROLLER_DATA_DIR=/var/lib/headroom
EXPOSE 30080
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.CONTROLLER_HTTP_PORT}/livez`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
CMD ["serve"]

# ---- a GPU server ----
FROM base AS gpu-server
COPY --from=gpu-server-packages /app/node_modules ./node_modules
# The binary is newer than its sources in dist/, so the server does not compile it again.
COPY --from=build /src/gpu-server/guard/build ./dist/gpu-server/guard/build
# In this image, because GPU nodes have it: agents run it.
COPY --from=probe-helper /headroom-probe-helper /headroom-probe-helper
USER 0:0
RUN chown 0:0 /var/lib/headroom && chmod 711 /var/lib/headroom
VOLUME /var/lib/headroom
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
CMD ["gpu-server"]
