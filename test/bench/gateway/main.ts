/**
 * `make bench-gateway`: measures `headroom gateway` on loopback, against the port of the task itself and its
 * proxy, which take turns. The task, the load and the gateway share the machine; so ratios matter.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { performance } from 'node:perf_hooks'
import { loadavg } from 'node:os'
import { HOST, startGatewayWorld, submit } from '../../support/gateway-world.ts'
import { until } from '../../support/live-cluster.ts'

const ROUNDS = 5
const MIB = 512
const STREAMS = 4
const CONNECTIONS = 16
const REQUESTS = 2_000

/** Reads bodies to their end, and answers `/MIB` with that many MiB. */
const SERVER = `
import { createServer } from 'node:http'
const block = Buffer.alloc(1 << 20, 120)
createServer((request, response) => {
  request.resume()
  const mib = Number(/\\/down\\/(\\d+)$/.exec(request.url)?.[1] ?? 0)
  if (mib === 0) return void request.once('end', () => response.end('ok'))
  response.setHeader('Content-Length', mib << 20)
  let left = mib
  const send = () => {
    while (left > 0) {
      left -= 1
      if (!response.write(block)) return void response.once('drain', send)
    }
    response.end()
  }
  send()
}).listen(Number(process.argv[1]), '127.0.0.1')`

interface Peer {
  readonly name: string
  readonly port: number
  readonly prefix: string
}

const world = await startGatewayWorld()
try {
  const command = (port: number): string[] => [
    ...[process.execPath, '--input-type=module', '-e', SERVER, String(port)],
  ]
  const { id, port } = await submit(world, 'served', command)
  let proxy = 0
  await until('its proxy has an address', async () => {
    const found = await world.cluster.get<{
      readonly ports?: readonly { readonly address: string | null }[]
    }>(`/tasks/${id}/assignment`)
    proxy = Number(/:(\d+)$/.exec(found.ports?.[0]?.address ?? '')?.[1] ?? 0)
    return proxy !== 0 && (await answers(port))
  })
  const peers: readonly Peer[] = [
    { name: 'direct', port, prefix: '' },
    { name: 'proxy', port: proxy, prefix: '' },
    { name: 'gateway', port: world.port, prefix: '/alice/served' },
  ]
  await table(['down, MiB/s'], peers, (peer) => transfer(peer, 'down'))
  await table(['up, MiB/s'], peers, (peer) => transfer(peer, 'up'))
  for (const isKept of [true, false]) {
    const how = `${isKept ? 'kept' : 'new'} connections`
    const figures = [`${how}, requests/s`, `${how}, p50 ms`, `${how}, p99 ms`]
    await table(figures, peers, (peer) => requests(peer, isKept))
  }
  console.log(
    `load of the machine: ${loadavg()
      .map((load) => load.toFixed(1))
      .join(' ')}`,
  )
} finally {
  await world.cluster.end()
}

/** Prints the median of each figure and peer over rounds in turns. */
async function table(
  figures: readonly string[],
  peers: readonly Peer[],
  measure: (peer: Peer) => Promise<readonly number[]>,
): Promise<void> {
  const found = new Map<Peer, (readonly number[])[]>(peers.map((peer) => [peer, []]))
  for (let round = 0; round < ROUNDS; round++)
    for (const peer of peers) found.get(peer)?.push(await measure(peer))
  for (const [at, figure] of figures.entries()) {
    const cells = [...found].map(([{ name }, rounds]) => {
      const median = quantile(
        rounds.map((values) => values[at] ?? NaN),
        0.5,
      )
      return `${name} ${median < 100 ? median.toFixed(2) : Math.round(median).toLocaleString('en-US')}`
    })
    console.log(`${figure}: ${cells.join(', ')}`)
  }
}

function quantile(values: readonly number[], part: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * part)] ?? NaN
}

/** By curl, a process for each stream, so that the load is not the limit. */
async function transfer({ port, prefix }: Peer, way: 'up' | 'down'): Promise<readonly number[]> {
  const started = performance.now()
  const url = `http://127.0.0.1:${port}${prefix}${way === 'down' ? `/down/${MIB}` : '/up'}`
  const headers = ['-H', `Host: ${HOST}`, '-H', `Authorization: Bearer ${world.token}`, '-H', 'Expect:']
  const source = `head -c ${MIB << 20} /dev/zero | `
  const curl = ['curl', '-sSf', '-o', '/dev/null', ...headers, ...(way === 'up' ? ['-T', '-'] : []), url]
  const line = `${way === 'up' ? source : ''}${curl.map((word) => `'${word}'`).join(' ')}`
  const codes = await Promise.all(
    Array.from({ length: STREAMS }, async () => {
      const child = spawn('sh', ['-c', line], { stdio: ['ignore', 'ignore', 'inherit'] })
      return (await once(child, 'exit')) as [number]
    }),
  )
  if (codes.some(([code]) => code !== 0)) throw new Error(`a transfer failed: ${line}`)
  return [(STREAMS * MIB) / ((performance.now() - started) / 1000)]
}

/** Requests per second, and the 50th and 99th percentile of their times in ms. */
async function requests(peer: Peer, isKept: boolean): Promise<readonly number[]> {
  const agent = isKept ? new Agent({ keepAlive: true, maxSockets: CONNECTIONS }) : false
  const times: number[] = []
  const started = performance.now()
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      for (let i = 0; i < REQUESTS / CONNECTIONS; i++) {
        const at = performance.now()
        await once200(peer, agent)
        times.push(performance.now() - at)
      }
    }),
  )
  const seconds = (performance.now() - started) / 1000
  if (agent !== false) agent.destroy()
  return [times.length / seconds, quantile(times, 0.5), quantile(times, 0.99)]
}

function once200({ port, prefix }: Peer, agent: Agent | false): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { host: HOST, authorization: `Bearer ${world.token}` }
    const sent = request({ host: '127.0.0.1', port, path: `${prefix}/small`, agent, headers }, (response) => {
      response.resume()
      response.once('end', () => {
        if (response.statusCode === 200) resolve()
        else reject(new Error(`status ${response.statusCode}`))
      })
    })
    sent.once('error', reject)
    sent.end()
  })
}

function answers(port: number): Promise<boolean> {
  return once200({ name: '', port, prefix: '' }, false).then(
    () => true,
    () => false,
  )
}
