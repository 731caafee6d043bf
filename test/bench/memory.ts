/**
 * `make bench-memory`: the resident memory of a controller between 100,000 and 1,000,000 completed tasks. The
 * controller is the real one, over SQLite on disk; a server with the production core in the same process
 * completes tasks at once. Exits with 1 when memory is not constant.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { REAL_TIME } from '../../services/real-time.ts'
import { createServedMetrics } from '../../services/controller/served-metrics.ts'
import { createSeriesFiles } from '../../controller/adapters/series-files.ts'
import { createSqliteStore } from '../../controller/adapters/sqlite/store.ts'
import { createController } from '../../controller/controller.ts'
import { ServerCore } from '../../gpu-server/core/server-core.ts'
import { createMemoryStorage } from '../../gpu-server/core/storage.ts'
import { nodeIdFromName } from '../../protocol/node-id.ts'
import { SimulatedDevice } from '../../simulator/fleet/simulated-device.ts'
import { PacedClock } from '../../simulator/kernel/paced-clock.ts'
import { loadScenario } from '../../simulator/scenario/load.ts'
import { createSeededRandom } from '../../simulator/kernel/seeded-random.ts'
import { plainBus } from '../support/plain-bus.ts'
import { requestOf } from './engine-cluster.ts'
import { collectGarbage } from './stopwatch.ts'

const FLEET = `scenario: memory
version: 1
seed: 1
clock: { until: 1h }
fleet:
  - { count: 1, name: "n-{i}", gpus: 8, gpu: { model: A100-40, vram_mib: 40960, swap: stock-driver } }
`
/** Open tasks at a time: far fewer than the server accepts, so that none waits. */
const MAX_OPEN = 256
const TASK_MS = 1
/** Maximum deviation of the highest and lowest reading. */
const FLAT_WITHIN = 0.1
const SAMPLES = 5

const { values } = parseArgs({
  options: { tasks: { type: 'string', default: '1000000' }, marks: { type: 'string', default: '10' } },
})
const total = Number(values.tasks)
const markEvery = Math.floor(total / Number(values.marks))

const folder = mkdtempSync(join(process.env['BENCH_DIR'] ?? tmpdir(), 'headroom-memory-'))
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
const measured = createServedMetrics()
const store = createSqliteStore({ dataDir: folder, onCommit: measured.onCommit })
const clock = new PacedClock(Date.now(), REAL_TIME)
const random = createSeededRandom('memory')
const bus = plainBus(clock)
let finished = 0
const controller = createController(
  { clock, random, bus, store },
  {
    series: {
      archive: createSeriesFiles({ dir: join(folder, 'series'), log: (line) => console.error(line) }),
    },
    onEvents: (events) => {
      measured.onEvents(events)
      for (const event of events) if (event.kind === 'task_finished') finished += 1
    },
    onFault: (fault) => {
      throw fault
    },
  },
)
const [node] = loadScenario({ text: FLEET, baseDir: '.', file: 'memory' }).scenario.nodes
if (node === undefined) throw new Error('the fleet has no node')
const server = new ServerCore({
  nodeId: nodeIdFromName(node.name),
  name: node.name,
  address: 'bench',
  hostSwapMib: node.hostSwapMib,
  signalsWanted: true,
  deviceKind: 'simulated',
  allowExec: true,
  clock,
  random: random.stream('server'),
  bus,
  device: new SimulatedDevice(clock, node, {
    planOf: () => ({ kind: 'duration', ms: TASK_MS }),
    allocStepsOf: () => [],
  }),
  storage: createMemoryStorage(),
  areHeartbeatsElided: false,
})
await controller.start()
measured.watch({
  controller,
  dropped: new Map(),
  succession: () => null,
  leaseAgeMs: () => null,
  commitQueueDepth: () => store.queueDepth(),
  diskFreeBytes: () => null,
  recording: null,
})
server.start()
clock.begin()

const marks: { readonly tasks: number; readonly rssMib: number; readonly heapMib: number }[] = []
const from = performance.now()
let submitted = 0
while (marks.length * markEvery < total) {
  const due = Math.min(markEvery * (marks.length + 1), total)
  while (submitted < due && submitted - finished < MAX_OPEN) submit()
  if (finished < due) await sleep(1)
  else await mark(due)
}
const [first, ...later] = marks.map(({ rssMib }) => rssMib)
const spread = Math.max(...later.map((rssMib) => Math.abs(rssMib - (first ?? NaN)) / (first ?? NaN)))
console.log(
  `memory        ${(100 * spread).toFixed(1)} % off the first mark at most (${100 * FLAT_WITHIN} % ` +
    `allowed); ${((total / (performance.now() - from)) * 1000) | 0} tasks/s`,
)
server.stop()
clock.stop()
await controller.stop()
measured.process.stop()
process.exitCode = spread <= FLAT_WITHIN ? 0 : 1

function submit(): void {
  submitted += 1
  controller.commands.submitTask(requestOf(1_000, { priority: submitted % 10 === 0 ? 0 : 2 }), (answer) => {
    if (!answer.ok) throw new Error(`refused: ${JSON.stringify(answer.refusal)}`)
  })
}

/** Garbage does not count: the smallest of a few readings after a collection. */
async function mark(tasks: number): Promise<void> {
  let [rssMib, heapMib] = [Infinity, Infinity]
  for (let sample = 0; sample < SAMPLES; sample++) {
    collectGarbage()
    await sleep(200)
    rssMib = Math.min(rssMib, anonymousMib())
    heapMib = Math.min(heapMib, process.memoryUsage().heapUsed / 1_048_576)
  }
  marks.push({ tasks, rssMib, heapMib })
  console.log(
    `${String(tasks).padStart(9)} tasks   ${rssMib.toFixed(1)} MiB resident, ${heapMib.toFixed(1)} ` +
      'MiB of the main heap',
  )
}

/** Resident memory without file pages, which the kernel can reclaim (the store's log is mapped). */
function anonymousMib(): number {
  const text = readFileSync('/proc/self/status', 'utf8')
  const kib = Number(/^RssAnon:\s+(\d+) kB$/m.exec(text)?.[1])
  return kib / 1024
}
