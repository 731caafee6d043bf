/**
 * `headroom sim serve FILE`: the scenario's simulated servers, for a controller that is reached over NATS.
 */
import { randomUUID } from 'node:crypto'
import { nodeIdFromName } from '../../protocol/node-id.ts'
import { refuseBeyondFleet } from '../../simulator/fleet/fleet-faults.ts'
import { CommandWorkload } from '../../simulator/fleet/command-work.ts'
import { ENDLESS } from '../../simulator/fleet/open-workload.ts'
import type { Fault } from '../../simulator/scenario/fault.ts'
import { loadScenario } from '../../simulator/scenario/load.ts'
import { formatDuration } from '../../simulator/document/quantity.ts'
import { createServedFleet, type ServedFleet } from '../../simulator/world/served-fleet.ts'
import type { Work } from '../../simulator/trace/trace-format.ts'
import { connectBroker, type BrokerOptions } from '../../services/settings/broker-connection.ts'
import { EXIT_OK } from '../../services/exit-codes.ts'
import { REAL_TIME } from '../../services/real-time.ts'
import { helloRefusal } from '../../services/hello-refusal.ts'
import { untilSignal } from '../../services/until-signal.ts'
import { plural } from '../output/figures.ts'

export interface SimServeOptions extends BrokerOptions {
  readonly speed: number
  /** Busy time of tasks whose command does not state it; undefined: until they are stopped. */
  readonly taskTime?: number
  /** False: the faults of the scenario are left out. */
  readonly faults: boolean
}

/** Maximum number of servers listed with their ids. */
const LISTED = 8

export async function simServe(file: string, options: SimServeOptions): Promise<number> {
  const { scenario } = loadScenario(
    file,
    [],
    ({ faults }, refuse) => options.faults && refuseBeyondFleet(faults, refuse),
  )
  const bus = connectBroker(options, `headroom sim serve ${scenario.name}`, () => fleet.reconnected())
  const otherwise: Work =
    options.taskTime === undefined ? ENDLESS : { kind: 'duration', ms: options.taskTime }
  const fleet: ServedFleet = createServedFleet({
    plan: options.faults ? scenario : { ...scenario, faults: [] },
    busFor: () => bus,
    real: REAL_TIME,
    speed: options.speed,
    seed: randomUUID(),
    workload: new CommandWorkload(otherwise),
    onFault: (phase, fault) =>
      process.stdout.write(`${new Date().toISOString()}  ${phase}  ${describeFault(fault)}\n`),
    onRefused: (node, reason) => process.stderr.write(`headroom: ${node}: ${helloRefusal(reason)}\n`),
  })
  fleet.start()
  const gpus = scenario.nodes.reduce((sum, node) => sum + node.gpuCount, 0)
  process.stdout.write(
    `${plural(scenario.nodes.length, 'simulated server')} with ${plural(gpus, 'GPU')} ` +
      '(press Ctrl-C to stop them and their tasks)\n',
  )
  for (const { name } of scenario.nodes.slice(0, LISTED))
    process.stdout.write(`  ${name}  ${nodeIdFromName(name)}\n`)
  await untilSignal()
  fleet.stop()
  await bus.close()
  return EXIT_OK
}

function describeFault(fault: Fault): string {
  const { kind, forMs } = fault
  const lasts = forMs === null || forMs === 0 ? '' : ` for ${formatDuration(forMs)}`
  return `${kind} ${placeOf(fault)}${lasts}`
}

function placeOf(fault: Fault): string {
  if ('node' in fault) return fault.node
  if ('link' in fault) return fault.link.nodes?.join(', ') ?? 'all nodes'
  return fault.kind === 'disk_full' && fault.on !== 'controller' ? fault.on.node : ''
}
