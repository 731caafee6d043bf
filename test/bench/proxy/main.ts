/**
 * `make bench-proxy`: measures the forwarding proxy of a task on loopback and prints a table; exits with 1
 * when a floor is missed. Direct, proxy and nginx take turns, so that the rest of the machine affects all of
 * them.
 */
import { misses, rowsOf, tableOf } from '../table.ts'
import type { Reading } from '../targets.ts'
import { holdAt, openBench, startNginx, type Bench } from './peers.ts'
import { PROXY_TARGETS, type ProxyMeasure } from './targets.ts'

const ROUNDS = 7
const MIB = 4_096
const CONNECTIONS = 16
const KEPT_REQUESTS = 100_000
const NEW_REQUESTS = 10_000
const HELD_PER_TASK = 100
const HELD_TASKS = 10

type Peer = 'direct' | 'proxy' | 'nginx'

/** The numbers of each round, by peer. */
function inTurns(
  bench: Bench,
  ports: Readonly<Partial<Record<Peer, number>>>,
  args: (port: number) => readonly (string | number)[],
): Readonly<Partial<Record<Peer, readonly (readonly number[])[]>>> {
  const found: Partial<Record<Peer, (readonly number[])[]>> = {}
  for (let round = 0; round < ROUNDS; round++) {
    for (const [peer, port] of Object.entries(ports) as [Peer, number][])
      (found[peer] ??= []).push(bench.load(...args(port)))
  }
  return found
}

function median(rounds: readonly (readonly number[])[] | undefined, at = 0): number {
  const sorted = (rounds ?? []).map((numbers) => numbers[at] ?? NaN).sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? NaN
}

function bandwidth(bench: Bench, ports: Parameters<typeof inTurns>[1], way: 'upload' | 'download') {
  const found = inTurns(bench, ports, (port) => [way, port, MIB, 4])
  const [direct, proxy, nginx] = [median(found.direct), median(found.proxy), median(found.nginx)]
  const value = found.nginx === undefined ? ('skipped' as const) : proxy / nginx
  const of = (figure: number): string => `${Math.round(figure).toLocaleString('en-US')} MiB/s`
  const note = `direct ${of(direct)}, proxy ${of(proxy)}, nginx ${Number.isNaN(nginx) ? 'absent' : of(nginx)}`
  return { name: `${way}_ratio`, value, note } satisfies Reading<ProxyMeasure>
}

function latency(bench: Bench, ports: Parameters<typeof inTurns>[1], kind: 'kept' | 'new') {
  const total = kind === 'kept' ? KEPT_REQUESTS : NEW_REQUESTS
  const found = inTurns(bench, ports, (port) => ['latency', kind, port, CONNECTIONS, total])
  const value = (median(found.proxy, 1) - median(found.direct, 1)) / 1000
  const of = (peer: Peer): string =>
    found[peer] === undefined
      ? `${peer} absent`
      : `${peer} ${Math.round(median(found[peer]))}/${Math.round(median(found[peer], 1))} µs`
  const note = `p50/p99: ${of('direct')}, ${of('proxy')}, ${of('nginx')}`
  return { name: `${kind}_p99_more_ms`, value, note } satisfies Reading<ProxyMeasure>
}

async function held(bench: Bench) {
  const ends: (() => void)[] = []
  for (let i = 0; i < HELD_TASKS; i++) {
    const { proxy } = await bench.task(`held-${i}`, true)
    ends.push(await holdAt(bench.program, proxy, HELD_PER_TASK))
  }
  const value = bench.proxiesMib()
  for (const end of ends) end()
  const note = `${HELD_TASKS * HELD_PER_TASK} held connections in ${HELD_TASKS} proxies, and one without any`
  return { name: 'held_1000_rss_mib', value, note } satisfies Reading<ProxyMeasure>
}

const bench = await openBench()
const { port, proxy } = await bench.task('served')
const nginx = await startNginx(bench.folder, port)
if (nginx === null)
  console.log('nginx-light or libnginx-mod-stream is not installed: compared with direct only')
try {
  const ports = { direct: port, proxy, ...(nginx === null ? {} : { nginx: nginx.port }) }
  const readings: Reading<ProxyMeasure>[] = []
  const add = (reading: Reading<ProxyMeasure>): void => {
    readings.push(reading)
    const value = typeof reading.value === 'number' ? reading.value.toFixed(2) : reading.value
    console.log(`${reading.name} ${value}: ${reading.note}`)
  }
  add(bandwidth(bench, ports, 'upload'))
  add(bandwidth(bench, ports, 'download'))
  add(latency(bench, ports, 'kept'))
  add(latency(bench, ports, 'new'))
  add(await held(bench))
  console.log(`\n${tableOf(readings, PROXY_TARGETS)}`)
  process.exitCode = rowsOf(readings, PROXY_TARGETS).some(misses) ? 1 : 0
} finally {
  nginx?.process.kill()
  await bench.close()
}
