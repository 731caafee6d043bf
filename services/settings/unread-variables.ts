/**
 * Finds variables of the environment that look like ours and are not used: a misspelt name would silently
 * leave the default in effect.
 */
import { nearestName } from '../../simulator/document/nearest-name.ts'
import { ENVIRONMENT } from './env-table.ts'

const PREFIX = 'CONTROLLER_'
const KNOWN = [...Object.values(ENVIRONMENT).map(({ name }) => name), 'CONTROLLER_NODE_GROUP_IDS']
/** Variables that Kubernetes sets in every container for a service whose name begins with `controller`. */
const OF_A_SERVICE =
  /_(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)$/
const ADDRESS_OF_A_SERVICE = /^(?:tcp|udp|sctp):\/\//

/** Returns one line per variable, in the order of names, without values. */
export function unreadVariables(env: Readonly<Record<string, string | undefined>>): readonly string[] {
  return Object.keys(env)
    .filter(
      (name) => name.startsWith(PREFIX) && !KNOWN.includes(name) && !isOfAService(name, env[name] ?? ''),
    )
    .sort((a, b) => (a < b ? -1 : 1))
    .map((name) => {
      const near = nearestName(
        name.slice(PREFIX.length),
        KNOWN.map((known) => known.slice(PREFIX.length)),
      )
      return `${name} is set but not used${near === null ? '' : `; did you mean ${PREFIX}${near}?`}`
    })
}

function isOfAService(name: string, value: string): boolean {
  return OF_A_SERVICE.test(name) || (name.endsWith('_PORT') && ADDRESS_OF_A_SERVICE.test(value))
}
