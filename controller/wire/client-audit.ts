/** A change requested by a client of the bus, in the form of REST's audit. */
import type { TaskAnswer } from '../../protocol/client-messages.ts'
import type { Refusal } from '../model/command.ts'
import { busOwner } from '../model/bus-owner.ts'

export interface ClientAuditSubject {
  readonly kind: 'work'
  readonly actor: string
  readonly role: 'submitter'
  readonly tokenId: null
  readonly address: null
  /** The id of the message. */
  readonly requestId: string
  readonly action: 'submitTask' | 'cancelTask'
  /** The subject of the message. */
  readonly target: string
}

/** The audit trail of the REST API (controller/api/auth/audit-trail.ts). */
export interface ClientAudit {
  begin(subject: ClientAuditSubject): number
  /** @param begun null: the request was refused before it began */
  end(begun: number | null, subject: ClientAuditSubject, status: number, code: string | null): void
}

export function auditSubjectOf(
  op: 'submit' | 'cancel',
  clientId: string,
  messageId: string,
  subject: string,
): ClientAuditSubject {
  const action = op === 'submit' ? 'submitTask' : 'cancelTask'
  const noCaller = { tokenId: null, address: null } as const
  return {
    ...noCaller,
    kind: 'work',
    actor: busOwner(clientId),
    role: 'submitter',
    requestId: messageId,
    action,
    target: subject,
  }
}

/** The status with which REST answers the same refusal. */
const STATUS = {
  invalid: 400,
  not_found: 404,
  conflict: 409,
  key_reused: 422,
  too_many_pending: 429,
  store_failed: 503,
  commit_unknown: 503,
} as const satisfies Record<Refusal['code'], number>

/** Records the outcome of a request once it is answered. */
export function audited<T extends TaskAnswer | Refusal>(
  audit: ClientAudit | null,
  subject: ClientAuditSubject,
  tell: (told: T) => void,
): (told: T) => void {
  if (audit === null) return tell
  const begun = audit.begin(subject)
  return (told) => {
    tell(told)
    const code = 'code' in told ? told.code : null
    audit.end(begun, subject, code === null ? 200 : STATUS[code], code)
  }
}
