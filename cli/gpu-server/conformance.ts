/**
 * `headroom conformance --node ID`: tests one GPU server against the protocol, over a good and a faulty
 * network, and reports which rules it keeps.
 */
import { randomUUID } from 'node:crypto'
import { examineServer, RULES, type RuleReport } from '../../simulator/experiment/conformance/conformance.ts'
import { Examiner } from '../../simulator/experiment/conformance/examiner.ts'
import { PacedClock } from '../../simulator/kernel/paced-clock.ts'
import { createSeededRandom } from '../../simulator/kernel/seeded-random.ts'
import type { NatsBus } from '../../controller/adapters/nats-bus.ts'
import { connectBroker, type BrokerOptions } from '../../services/settings/broker-connection.ts'
import {
  CommandFailure,
  EXIT_FAILED,
  EXIT_NO_CONNECTION,
  EXIT_OK,
  UsageError,
} from '../../services/exit-codes.ts'
import { REAL_TIME } from '../../services/real-time.ts'

export interface ConformanceOptions extends BrokerOptions {
  readonly node: string
  readonly heartbeat: number
  readonly lease: number
  readonly seed?: string
  /** Only rules with this number, for example `R3`. */
  readonly only?: string
  readonly json?: boolean
}

const CONNECT_TIMEOUT_MS = 10_000

export async function conformance(options: ConformanceOptions): Promise<number> {
  const rules = RULES.filter(({ rule }) => options.only === undefined || rule === options.only)
  if (rules.length === 0)
    throw new UsageError(
      `--only ${options.only}: unknown rule. ` +
        `Use one of ${[...new Set(RULES.map(({ rule }) => rule))].join(', ')}.`,
    )
  const bus = await connectedBroker(options)
  const clock = new PacedClock(REAL_TIME.now(), REAL_TIME)
  clock.begin()
  const seed = options.seed ?? randomUUID()
  const examiner = new Examiner({
    bus,
    clock,
    random: createSeededRandom(seed).stream('examiner'),
    nodeId: options.node,
    settings: { heartbeat_ms: options.heartbeat, run_lease_ms: options.lease, safety_reserve_mib: 0 },
    // More than the epoch of any controller that counts its starts, and of any earlier examination.
    epoch: Date.now(),
  })
  const reports = await examineServer(
    examiner,
    (report) => {
      if (options.json !== true) process.stdout.write(`${lineOf(report)}\n`)
    },
    rules,
  )
  clock.stop()
  await bus.close()
  const count = (verdict: string) => reports.filter((report) => report.verdict === verdict).length
  const broken = count('broken')
  if (options.json === true)
    process.stdout.write(`${JSON.stringify({ node_id: options.node, seed, reports }, null, 2)}\n`)
  else
    process.stdout.write(
      `${count('kept')} rules kept, ${broken} broken, ${count('not_tested')} not tested (seed ${seed})\n`,
    )
  return broken === 0 ? EXIT_OK : EXIT_FAILED
}

/** A missing broker is not a fault of the server. */
async function connectedBroker(options: ConformanceOptions): Promise<NatsBus> {
  const { promise: isThere, resolve } = Promise.withResolvers<boolean>()
  const timer = setTimeout(() => resolve(false), CONNECT_TIMEOUT_MS)
  const bus = connectBroker(options, 'headroom conformance', () => resolve(true))
  if (!(await isThere)) {
    await bus.close()
    throw new CommandFailure(
      `no broker responded within ${CONNECT_TIMEOUT_MS / 1000} s: nothing was tested`,
      EXIT_NO_CONNECTION,
    )
  }
  clearTimeout(timer)
  return bus
}

function lineOf({ verdict, rule, claim, detail }: RuleReport): string {
  const mark = { kept: 'kept      ', broken: 'BROKEN    ', not_tested: 'not tested' }[verdict]
  return `${mark}  ${rule.padEnd(5)}  ${claim}${detail === null ? '' : `: ${detail}`}`
}
