/**
 * Adds changes by clients of the bus to the audit of the REST interface. The audit is created after the
 * controller, whose first client request comes later.
 */
import type { AuditTrail } from '../../controller/api/auth/audit-trail.ts'
import type { ClientAudit } from '../../controller/wire/client-audit.ts'

/** No entry has this number. */
const NOT_BEGUN = 0

export function auditOfClients(trail: () => AuditTrail | null): ClientAudit {
  return {
    begin: (subject) => trail()?.begin(subject) ?? NOT_BEGUN,
    end: (begun, subject, status, code) =>
      trail()?.end(begun === NOT_BEGUN ? null : begun, subject, status, code),
  }
}
