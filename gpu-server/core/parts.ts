/** Objects that the parts of a server core share. */
import type { Clock } from '../../controller/ports/clock.ts'
import type { Device } from './device.ts'
import type { DurableState } from './durable-state.ts'
import type { Envelopes } from './envelopes.ts'
import type { Ledger } from './ledger.ts'
import type { RunLease } from './lease.ts'
import type { Outgoing } from './outbox.ts'
import type { TaskTable } from './task-table.ts'

export interface Parts {
  readonly clock: Clock
  readonly device: Device
  readonly durable: DurableState
  readonly envelopes: Envelopes
  readonly lease: RunLease
  readonly ledger: Ledger
  readonly tasks: TaskTable
  /** Puts an event into the outbox and schedules its sending. */
  readonly emit: (event: Outgoing) => void
}
