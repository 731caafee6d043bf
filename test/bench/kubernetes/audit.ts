/** What an account asked of the API server, from its audit log. */
import { readFileSync } from 'node:fs'
import type { Instant } from '../../../protocol/units.ts'

export interface Asked {
  /** `patch pods/status` */
  readonly what: string
  readonly at: Instant
  readonly answeredAt: Instant
  readonly code: number
}

interface Line {
  readonly stage: string
  readonly verb: string
  readonly user: { readonly username: string }
  readonly objectRef?: { readonly resource: string; readonly subresource?: string }
  readonly responseStatus?: { readonly code?: number }
  readonly requestReceivedTimestamp: string
  readonly stageTimestamp: string
}

const WRITES = ['create', 'update', 'patch', 'delete']

/** Answered requests of the account, in the order of the log. */
export function askedBy(log: string, username: string): readonly Asked[] {
  return readFileSync(log, 'utf8')
    .split('\n')
    .flatMap((text): Asked[] => {
      if (!text.includes('"ResponseComplete"') || !text.includes(username)) return []
      const line = JSON.parse(text) as Line
      if (line.user.username !== username) return []
      const { resource = '', subresource } = line.objectRef ?? {}
      return [
        {
          what: `${line.verb} ${resource}${subresource === undefined ? '' : `/${subresource}`}`,
          at: Date.parse(line.requestReceivedTimestamp),
          answeredAt: Date.parse(line.stageTimestamp),
          code: line.responseStatus?.code ?? 0,
        },
      ]
    })
}

/** Writes about pods and nodes; the lease is renewed whether pods come or not. */
export function isWrite({ what }: Asked): boolean {
  const [verb = '', resource = ''] = what.split(' ')
  return WRITES.includes(verb) && !['leases', 'secrets', 'tokenreviews'].includes(resource)
}
