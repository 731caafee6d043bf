/** The controller of one term: an empty store in recovery, and a bus within the process. */
import { createMemoryStore, EMPTY_STATE } from '../../controller/adapters/memory-store.ts'
import { type Controller, createController } from '../../controller/controller.ts'
import type { ConfigFields } from '../../controller/model/config.ts'
import type { Bus } from '../../controller/ports/bus.ts'
import type { Clock } from '../../controller/ports/clock.ts'
import type { Random } from '../../controller/ports/random.ts'
import type { InputTap } from '../../controller/recording/input-recorder.ts'
import { MAX_STOP_GRACE_SECONDS } from '../../protocol/limits.ts'
import { inRecovery, type RecoveredNode } from './node-records.ts'

export interface TermParts {
  readonly clock: Clock
  readonly random: Random
  readonly bus: Bus
  readonly nodes: readonly RecoveredNode[]
  readonly config: Partial<ConfigFields>
  /** Null: nothing is recorded. */
  readonly inputTap: InputTap | null
  readonly onFault: (fault: unknown) => void
}

export function termController(parts: TermParts): Controller {
  const { clock, random, bus, nodes, config, inputTap, onFault } = parts
  const initial = { ...EMPTY_STATE, ...inRecovery(nodes, clock.now()) }
  return createController(
    { clock, random, bus, store: createMemoryStore({ initial, retainFinished: false }) },
    {
      initialConfig: {
        default_vram_overcommit_percent: 0,
        max_stop_grace_seconds: MAX_STOP_GRACE_SECONDS,
        ...config,
      },
      ...(inputTap === null ? {} : { inputTap }),
      onFault,
    },
  )
}
