/** Checks that a controller runs, has the same version, is ready, and has the same time. */
import { ApiError } from '../../clients/typescript/client.ts'
import { openClient, type ServerOption } from '../command/session.ts'
import { packageVersion } from '../../services/package-info.ts'
import { nodeIdentityCheck } from './confinement.ts'
import { fail, ok, reasonOf, warn, type Check } from './check.ts'

/** A larger difference between clocks makes ages and times in answers misleading. */
const MAX_SKEW_MS = 5_000
/** One page; further nodes are not checked. */
const MAX_NODES = 1000

export async function controllerChecks(server: ServerOption): Promise<readonly Check[]> {
  const client = openClient(server)
  try {
    const version = await client.version()
    const readiness = await client.readiness()
    const askedAt = Date.now()
    const summary = await client.summary()
    return [
      ok('controller', `${client.url} answers (${version.fleet} fleet)`),
      versionCheck(version.version),
      ...readiness.checks.map((check) =>
        check.ok
          ? ok(`ready: ${check.name}`, check.detail)
          : fail(`ready: ${check.name}`, check.detail, 'see the controller’s log'),
      ),
      ...(readiness.checks.length === 0 ? [ok('ready', readiness.status)] : []),
      clockCheck(Date.parse(summary.at), askedAt, Date.now()),
      ...(version.fleet === 'simulated'
        ? []
        : nodeIdentityCheck((await client.nodes.list({ limit: MAX_NODES })).items)),
    ]
  } catch (error) {
    if (error instanceof ApiError && (error.status === 401 || error.status === 403)) {
      return [
        fail(
          'controller',
          `${client.url} answers: ${error.detail}`,
          'set HEADROOM_TOKEN or --token-file to a token of a viewer',
        ),
      ]
    }
    return [
      fail(
        'controller',
        reasonOf(error),
        'start one with `headroom serve`, or set VENDOR_CONTROLLER_URL or --server',
      ),
    ]
  }
}

function versionCheck(theirs: string): Check {
  const ours = packageVersion()
  if (theirs === ours) return ok('version', ours)
  return warn(
    'version',
    `the controller is ${theirs}, this command ${ours}`,
    'use the same version on both sides',
  )
}

/** The controller's time must be between the times of request and answer, within the tolerance. */
export function clockCheck(theirs: number, askedAt: number, answeredAt: number): Check {
  const skewMs = theirs < askedAt ? askedAt - theirs : Math.max(0, theirs - answeredAt)
  if (skewMs <= MAX_SKEW_MS) return ok('clock', 'agrees with the controller')
  const detail = `differs from the controller by ${Math.round(skewMs / 1000)} s`
  return warn('clock', detail, 'set both by NTP (a fresh simulated fleet lags for some seconds at its start)')
}
