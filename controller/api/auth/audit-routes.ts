import type { AuditRecord } from '../../ports/store.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { readCursor, writeCursor } from '../http/cursor.ts'
import { momentOf, presentInstant } from '../http/instant.ts'
import { operation } from '../http/operation.ts'
import { AuditPageSchema, AuditQuerySchema, type AuditEntryBody } from './audit-schema.ts'

const listAudit = operation(
  {
    operationId: 'listAudit',
    role: 'admin',
    summary: 'Audit log of changes and refusals, newest first',
    description:
      'One entry for each request that changes state and for each refusal. To get the next page, send ' +
      '`next_cursor` as `cursor`.',
    tags: ['access'],
    querystring: AuditQuerySchema,
    response: { 200: AuditPageSchema },
  },
  ['store_failed'],
)

const DEFAULT_LIMIT = 50

/** GET /audit. */
export function auditRoutes(app: ApiApp, { views }: ApiContext): void {
  app.get('/audit', { schema: listAudit }, async ({ query }) => {
    const {
      cursor,
      limit = DEFAULT_LIMIT,
      actor = null,
      action = null,
      outcome = null,
      target: targetContains = null,
    } = query
    const beforeSeq = cursor === undefined ? null : readCursor(cursor)
    const [since, until] = [momentOf(query.since), momentOf(query.until)]
    // One extra entry tells whether there is another page.
    const filter = { beforeSeq, actor, action, outcome, targetContains, since, until }
    const found = await views.stored.audits({ ...filter, limit: limit + 1 })
    const items = found.slice(0, limit)
    const last = items.at(-1)
    const next_cursor = found.length > limit && last !== undefined ? writeCursor(last.seq) : null
    return { items: items.map(presentAudit), next_cursor, total: null }
  })
}

function presentAudit(record: AuditRecord): AuditEntryBody {
  const {
    seq,
    at,
    actor,
    role,
    tokenId,
    address,
    requestId,
    action,
    target,
    outcome,
    status,
    code,
    leftOut,
  } = record
  return {
    seq,
    at: presentInstant(at),
    actor,
    role,
    token_id: tokenId,
    address,
    request_id: requestId,
    action,
    target,
    outcome,
    status,
    code,
    left_out: leftOut,
  }
}
