/**
 * `make bench-live`: tasks per second from REST submission to completion, durable, over a real broker, on
 * 1,250 simulated servers of 8 GPUs; with the limits of the disk and the broker, measured in the same run.
 * Exits with 1 below the floor.
 */
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { connectNatsBus, type NatsBus } from '../../controller/adapters/nats-bus.ts'
import type { Envelope } from '../../protocol/envelope.ts'
import { LiveCluster, until } from '../support/live-cluster.ts'
import { measureMark } from './mark-cost.ts'

const NODES = 1_250
const FLOOR_PER_S = 2_000
const FSYNCS = 200
const ROUND_TRIPS = 2_000
const BLOCK_BYTES = 4_096
const GET_EVERY_MS = 20
const GETS = ['/config', '/nodes?limit=50', '/tasks?limit=50', '/summary']
const FLEET = `scenario: end-to-end
version: 1
seed: 1
fleet:
  - { count: ${NODES}, name: "sim-{i}", gpus: 8,
      gpu: { model: A100-40, vram_mib: 40960, swap: stock-driver } }
`

const BODY = JSON.stringify({ vram_mib: 4_000, command: ['true'] })

const { values } = parseArgs({
  options: { tasks: { type: 'string', default: '20000' }, connections: { type: 'string', default: '64' } },
})
const [tasks, connections] = [Number(values.tasks), Number(values.connections)]

interface Summary {
  readonly tasks: { readonly by_list: { readonly completed: number } }
}

// NODE_OPTIONS only for the controller: --cpu-prof.
const cluster = await LiveCluster.start({ NODE_OPTIONS: process.env['CONTROLLER_NODE_OPTIONS'] ?? '' })
try {
  await cluster.startFleet(FLEET, '--task-time', '1ms')
  await until(`${NODES} servers are up`, async () => (await upCount()) === NODES, 120_000)
  const fsyncMs = quantiles(fsyncProbe(join(cluster.folder, 'probe')))
  const mark = await measureMark(join(cluster.folder, 'marked'))
  const roundTripMs = quantiles(await roundTrips())
  await submitAll(Math.min(tasks, 2_000))
  const gets: number[] = []
  const startedAt = performance.now()
  let isLoading = true
  const reading = readAlong(gets, () => isLoading)
  const before = await completed()
  await submitAll(tasks)
  const submittedMs = performance.now() - startedAt
  await until('all tasks are completed', async () => (await completed()) - before >= tasks, 120_000)
  const tookMs = performance.now() - startedAt
  isLoading = false
  await reading
  const perS = (1000 * tasks) / tookMs
  const get = quantiles(gets)
  console.log(
    `end to end    ${perS.toFixed(0)} tasks/s from submit to completion (floor ${FLOOR_PER_S}); ` +
      `${tasks} tasks, ${connections} connections, ${NODES} × 8 GPUs`,
  )
  console.log(`submit        ${((1000 * tasks) / submittedMs).toFixed(0)} durable answers/s`)
  console.log(`GET           p50 ${get.p50} ms, p99 ${get.p99} ms under that load; ${gets.length} requests`)
  console.log(
    `fsync         p50 ${fsyncMs.p50} ms, p99 ${fsyncMs.p99} ms (${BLOCK_BYTES} bytes, same disk, ` +
      'before the load)',
  )
  const [bare, marked] = [quantiles([...mark.without]), quantiles([...mark.with])]
  console.log(
    `mark          commit of 10 tasks p50 ${bare.p50} ms without it, ${marked.p50} ms with it; p99 ` +
      `${bare.p99} and ${marked.p99} ms (in turn, before the load)`,
  )
  console.log(
    `broker        p50 ${roundTripMs.p50} ms, p99 ${roundTripMs.p99} ms a round trip (one at a time, ` +
      'before the load)',
  )
  process.exitCode = perS >= FLOOR_PER_S ? 0 : 1
} finally {
  await cluster.controller.end('SIGTERM')
  await cluster.end()
}

async function upCount(): Promise<number> {
  let [count, cursor] = [0, '']
  do {
    const page = await cluster.get<{ items: { status: string }[]; next_cursor: string | null }>(
      `/nodes?limit=1000${cursor}`,
    )
    count += page.items.filter(({ status }) => status === 'up').length
    cursor = page.next_cursor === null ? '' : `&cursor=${encodeURIComponent(page.next_cursor)}`
  } while (cursor !== '')
  return count
}

async function completed(): Promise<number> {
  return (await cluster.get<Summary>('/summary')).tasks.by_list.completed
}

async function submitAll(count: number): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  let sent = 0
  const one = async (): Promise<void> => {
    while (sent < count) {
      sent += 1
      await post(agent)
    }
  }
  await Promise.all(Array.from({ length: connections }, one))
  agent.destroy()
}

function post(agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { 'Content-Type': 'application/json', 'Content-Length': BODY.length }
    const sent = request(`${cluster.url}/api/v1/tasks`, { method: 'POST', agent, headers }, (answer) => {
      answer.resume()
      answer.once('end', () =>
        answer.statusCode === 201 ? resolve() : reject(new Error(`POST /tasks: ${answer.statusCode}`)),
      )
    })
    sent.once('error', reject)
    sent.end(BODY)
  })
}

/** One reader, like a page, with one request after another. */
async function readAlong(gets: number[], isOn: () => boolean): Promise<void> {
  while (isOn()) {
    gets.push(await timedGet(GETS[gets.length % GETS.length] as string))
    await new Promise((resolve) => setTimeout(resolve, GET_EVERY_MS))
  }
}

async function timedGet(path: string): Promise<number> {
  const before = performance.now()
  await cluster.get(path)
  return performance.now() - before
}

function fsyncProbe(file: string): number[] {
  const fd = openSync(file, 'w')
  const block = Buffer.alloc(BLOCK_BYTES, 1)
  const times = Array.from({ length: FSYNCS }, () => {
    const before = performance.now()
    writeSync(fd, block)
    fsyncSync(fd)
    return performance.now() - before
  })
  closeSync(fd)
  return times
}

async function roundTrips(): Promise<number[]> {
  const [asking, answering] = [connect('asks'), connect('answers')]
  const message: Envelope = {
    v: 1,
    id: 'p',
    sent_mono: 0,
    boot: { counter: 1, random: 'p' },
    seq: 1,
    epoch: 0,
    body: { op: 'refused', reason: 'probe' },
  }
  answering.subscribe('bench.echo', (heard, _subject, reply) => reply(heard))
  await until('both are connected', () => asking.isConnected && answering.isConnected)
  const times: number[] = []
  while (times.length < ROUND_TRIPS) {
    const before = performance.now()
    const isAnswered = await new Promise<boolean>((resolve) =>
      asking.request('bench.echo', message, 2_000, (outcome) => resolve(outcome.answered)),
    )
    if (isAnswered) times.push(performance.now() - before)
  }
  await Promise.all([asking.close(), answering.close()])
  return times
}

function connect(name: string): NatsBus {
  const quiet = { onState: () => {}, onBadMessage: () => {} }
  return connectNatsBus({ urls: [cluster.natsUrl], name, auth: { kind: 'none' }, tls: null, ...quiet })
}

function quantiles(values: readonly number[]): { readonly p50: string; readonly p99: string } {
  const sorted = Float64Array.from(values).sort((a, b) => a - b)
  const at = (share: number): string =>
    (sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? NaN).toFixed(2)
  return { p50: at(0.5), p99: at(0.99) }
}
