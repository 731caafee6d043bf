/** The audit is bounded: the newest entries of each kind are kept. */
import type { AuditKind } from '../../ports/store.ts'

/** Maximum number of entries of each kind: at most 100 MB (measured: 400 bytes each). */
export const RETAIN_AUDITS: Readonly<Record<AuditKind, number>> = {
  control: 100_000,
  work: 100_000,
  refusal: 50_000,
}
