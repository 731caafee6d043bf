/**
 * The operator has no settings of the standalone controller (specification 2.5): a client that sends
 * them here gets the command instead of them.
 */
import type { IncomingMessage } from 'node:http'
import { PROBLEMS } from '../../controller/api/http/errors.ts'
import type { AdminAnswer } from '../admin-server.ts'

const SETTINGS: readonly (readonly [path: RegExp, detail: string])[] = [
  [
    /^\/api\/v1\/config$/,
    'The settings of this cluster are a ClusterGPUPolicy: kubectl edit clustergpupolicy default.',
  ],
  [
    /^\/api\/v1\/nodes\/[^/]+\/config$/,
    'The settings of a node are a VendorNodePolicy: kubectl edit vendornodepolicy NODE.',
  ],
]

/** Null: the request is about something else. */
export function settingsRefusal({ method, url = '' }: IncomingMessage): AdminAnswer | null {
  const detail = SETTINGS.find(([path]) => path.test(url))?.[1]
  if (method !== 'PUT' || detail === undefined) return null
  const code = 'conflict'
  const problem = { type: `urn:headroom:problem:${code}`, ...PROBLEMS[code], detail, code, errors: [] }
  return { status: 409, text: `${JSON.stringify(problem)}\n`, type: 'application/problem+json' }
}
