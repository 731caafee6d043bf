/**
 * `headroom gateway`: one address for the clients of tasks that serve HTTP. A process of its own, on a port
 * and a host name of its own: what tasks send is not trusted.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { HeadroomClient } from '../../clients/typescript/client.ts'
import type { Endpoints as EndpointsBody } from '../../clients/typescript/endpoints.ts'
import { adminServer, listenOn } from '../admin-server.ts'
import { CommandFailure, EXIT_USAGE } from '../exit-codes.ts'
import { Calls, type CallLimits } from './calls.ts'
import { Endpoints } from './endpoints.ts'
import { endpointFollower } from './follow-endpoints.ts'
import { GatewayFigures } from './gateway-figures.ts'
import { clientServer } from './gateway-servers.ts'
import { isLoopbackHost, whyNotOwn } from './host-names.ts'
import { KEPT_BYTES } from './request-body.ts'
import type { ReplicaAddress } from './replica.ts'

export interface GatewayOptions extends CallLimits {
  readonly client: HeadroomClient
  /** In lower case. */
  readonly hostNames: readonly string[]
  /** It may share the host of the controller, for tests. */
  readonly sameHost: boolean
  readonly listen: ReplicaAddress
  readonly admin: ReplicaAddress
  readonly signal: AbortSignal
  /** Receives one line for the log. */
  readonly onNote: (line: string) => void
}

export interface RunningGateway {
  readonly port: number
  readonly adminPort: number
  /** Lets requests end, but not for long. */
  stop(): Promise<void>
}

/** The table is this old, and a gateway is not ready: another one may know more. */
const STALE_MS = 60_000
const STOP_WITHIN_MS = 8_000
const LOOK_EVERY_MS = 50

/** Rejects for a host name of the controller, a token that it refuses, or a port that is taken. */
export async function startGateway(options: GatewayOptions): Promise<RunningGateway> {
  const { client, hostNames, sameHost, signal, onNote } = options
  requireOwnHost(options, [])
  const follower = endpointFollower({ client, signal, onNote })
  const endpoints = new Endpoints({
    maxKeptBytes: options.maxHeld * KEPT_BYTES,
    find: (replica) => follower.find(replica),
  })
  const figures = new GatewayFigures(
    () => endpoints.all(),
    () => follower.heardAt,
  )
  const calls = new Calls(options, figures, (tokenId) => endpoints.isGood(tokenId))
  const first = await follower.first()
  requireOwnHost(options, first.controller_hosts)
  endpoints.update(first)
  const update = (body: EndpointsBody): void => endpoints.update(body)
  const refresh = (): Promise<void> => follower.refresh(update)
  const server = clientServer({ endpoints, figures, hostNames, sameHost }, calls, refresh)
  const whyNotReady = (): string | null =>
    performance.now() - (follower.heardAt ?? 0) < STALE_MS ? null : 'the controller does not answer'
  const admin = adminServer(() => figures.metrics.text(), whyNotReady, !isLoopbackHost(options.admin.host))
  const port = await listenOn(server, options.listen, '--listen')
  const adminPort = await listenOn(admin, options.admin, '--admin')
  void follower.follow(update)
  return {
    port,
    adminPort,
    async stop() {
      admin.close()
      server.close()
      const until = performance.now() + STOP_WITHIN_MS
      while (calls.count > 0 && performance.now() < until) await pause(LOOK_EVERY_MS)
      server.closeAllConnections()
      admin.closeAllConnections()
    },
  }
}

/** @throws CommandFailure */
function requireOwnHost({ hostNames, sameHost, client }: GatewayOptions, hosts: readonly string[]): void {
  const why = sameHost ? null : whyNotOwn(hostNames, client.url, hosts)
  if (why === null) return
  throw new CommandFailure(
    `--host-name: ${why}, and a page of a task must not share the origin of the controller. Give the ` +
      'gateway its own host name.',
    EXIT_USAGE,
  )
}
