/** `headroom sim serve FILE`: the scenario's servers, simulated, in the service of a controller that is reached over NATS. */
import { randomUUID } from 'node:crypto'
import { nodeIdFromName } from '../protocol/node-id.ts'
import { CommandWorkload } from '../simulator/fleet/command-work.ts'
import { ENDLESS } from '../simulator/fleet/workload.ts'
import { loadScenario } from '../simulator/scenario/load.ts'
import { createServedFleet, type ServedFleet } from '../simulator/served-fleet.ts'
import type { Work } from '../simulator/trace/trace-format.ts'
import { connectBroker, type BrokerOptions } from './broker-connection.ts'
import { EXIT_OK, UsageError } from './exit-codes.ts'
import { REAL_TIME } from './real-time.ts'
import { untilSignal } from './until-signal.ts'

export interface SimServeOptions extends BrokerOptions {
  readonly speed: number
  /** How long tasks are busy whose command says nothing of it; undefined: until they are stopped. */
  readonly taskTime?: number
  /** False: what the scenario says of faults is left out. */
  readonly faults: boolean
}

/** So many servers are listed with their ids. */
const LISTED = 8

export async function simServe(file: string, options: SimServeOptions): Promise<number> {
  const { scenario } = loadScenario(file)
  if (options.faults && scenario.faults.length > 0) {
    throw new UsageError(
      `${file}: faults: what breaks beside a real broker and controller is not the scenario's to say; --no-faults serves its servers without them, headroom sim run has them`,
    )
  }
  const bus = connectBroker(options, `headroom sim serve ${scenario.name}`, () => fleet.reconnected())
  const otherwise: Work = options.taskTime === undefined ? ENDLESS : { kind: 'duration', ms: options.taskTime }
  const fleet: ServedFleet = createServedFleet({
    nodes: scenario.nodes,
    busFor: () => bus,
    real: REAL_TIME,
    speed: options.speed,
    seed: randomUUID(),
    workload: new CommandWorkload(otherwise),
  })
  fleet.start()
  const gpus = scenario.nodes.reduce((sum, node) => sum + node.gpuCount, 0)
  process.stdout.write(`${scenario.nodes.length} simulated servers with ${gpus} GPUs (Ctrl-C ends them and their tasks)\n`)
  for (const { name } of scenario.nodes.slice(0, LISTED)) process.stdout.write(`  ${name}  ${nodeIdFromName(name)}\n`)
  await untilSignal()
  fleet.stop()
  await bus.close()
  return EXIT_OK
}
