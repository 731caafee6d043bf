import type { SessionView } from '../../ports/simulation.ts'
import type { SessionBody } from './session-schema.ts'
import { presentInstant } from '../http/instant.ts'

export function presentSession(view: SessionView): SessionBody {
  return {
    started_at: presentInstant(view.startAt),
    now: presentInstant(view.nowAt),
    virtual_seconds: view.virtualMs / 1000,
    ends_after_seconds: view.endMs === null ? null : view.endMs / 1000,
    is_paused: view.isPaused,
    speed: view.speed,
    is_seeking: view.isSeeking,
    events: view.events,
    last_seq: view.lastSeq,
    inputs: view.inputs,
    inputs_ahead: view.inputsAhead,
    state_hash: view.stateHash,
    snapshots: view.snapshots.map(({ id, name, virtualMs, events, stateHash }) => ({
      id,
      name,
      virtual_seconds: virtualMs / 1000,
      events,
      state_hash: stateHash,
    })),
  }
}
