/** Faults in a served fleet: with a real broker and controller, and in the fleet inside a controller. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { nodeIdFromName } from '../../protocol/node-id.ts'
import { temporaryFolder } from '../support/headroom-command.ts'
import { LiveCluster } from '../support/live-cluster.ts'
import { whyNoNatsServer } from '../support/nats-server.ts'
import { getJson, serve } from '../support/served.ts'

const WITHIN = { timeout: 90_000, interval: 100 }
const folder = temporaryFolder()
let cluster: LiveCluster | null = null
afterAll(() => cluster?.end(), 60_000)

const fleet = (faults: string): string => `
scenario: breaks
version: 1
clock: { until: 1h }
fleet: [{ name: "n{i}", count: 2, gpu: { vram_mib: 40960 } }]
${faults}
`

interface Told {
  readonly items: readonly {
    readonly kind: string
    readonly node_id: string | null
    readonly data: { readonly status?: string }
  }[]
}

function statusesOf({ items }: Told, node: string): string[] {
  return items
    .filter(({ kind, node_id }) => kind === 'node_status' && node_id === nodeIdFromName(node))
    .map(({ data }) => String(data.status))
}

describe('sim serve with faults', { timeout: 300_000 }, () => {
  it.skipIf(whyNoNatsServer() !== null)('affects its servers and links, and reports it', async () => {
    const live = (cluster = await LiveCluster.start())
    await live.send('PUT', '/config', { heartbeat_seconds: 1, run_lease_seconds: 15 })
    const faults =
      'faults: [{ at: 3s, crash: n0, for: 8s }, { at: 3s, partition: [controller, n1], for: 8s }]'
    const member = await live.startFleet(fleet(faults))
    await expect
      .poll(async () => statusesOf(await live.get<Told>('/events?limit=200'), 'n0'), WITHIN)
      .toEqual(['up', 'suspect', 'up'])
    await expect
      .poll(async () => statusesOf(await live.get<Told>('/events?limit=200'), 'n1'), WITHIN)
      .toEqual(['up', 'suspect', 'up'])
    for (const line of ['begins  crash n0 for 8s', 'ends  crash n0 for 8s', 'begins  partition n1 for 8s'])
      expect(member.output).toContain(line)
  })
})

describe('headroom serve with a scenario as its fleet', { timeout: 300_000 }, () => {
  it('runs its servers, its workload and its faults', async () => {
    const file = join(folder, 'fleet.scenario.yaml')
    const work =
      'config: { idle_swap_out_seconds: 77 }\nworkload: [{ task: { id: mine, vram_mib: 1Gi, run: 1h } }]\n'
    writeFileSync(file, fleet(`${work}faults: [{ at: 4s, crash: n1, for: 10s }]`))
    const env = { CONTROLLER_SIMULATED_FLEET: file, LOG_LEVEL: 'info' }
    const { url, output, process, ended } = await serve(join(folder, 'data'), env)
    expect(await getJson<object>(`${url}/api/v1/config`)).toMatchObject({
      source: 'environment',
      idle_swap_out_seconds: 77,
    })
    const body = JSON.stringify({ heartbeat_seconds: 1 })
    await fetch(`${url}/api/v1/config`, {
      method: 'PUT',
      headers: { 'Content-Type': 'application/json' },
      body,
    })
    const events = () => getJson<Told>(`${url}/api/v1/events?limit=200`)
    await expect
      .poll(async () => (await events()).items.map(({ kind }) => kind), WITHIN)
      .toContain('task_started')
    await expect.poll(async () => statusesOf(await events(), 'n1'), WITHIN).toEqual(['up', 'suspect'])
    for (const said of ['fault begins', `the simulated fleet of ${file}`]) expect(output()).toContain(said)
    process.kill('SIGTERM')
    expect(await ended).toBe(0)
  })

  it('reports the line of an impossible fault, and refuses a broker in addition', async () => {
    const file = join(folder, 'beyond.scenario.yaml')
    writeFileSync(
      file,
      fleet('faults:\n  - { at: 2s, restart: broker }\n  - { at: 2s, crash: controller, for: 5s }'),
    )
    const lines = readFileSync(file, 'utf8').split('\n')
    const line = 1 + lines.findIndex((each) => each.includes('crash: controller'))
    const refused = serve(join(folder, 'other'), { CONTROLLER_SIMULATED_FLEET: file })
    await expect(refused).rejects.toThrow(
      `CONTROLLER_SIMULATED_FLEET: ${folder}/beyond.scenario.yaml:${line}:5: faults[1]: crash_controller: `,
    )
    const both = serve(join(folder, 'other'), {
      CONTROLLER_SIMULATED_FLEET: file,
      CONTROLLER_NATS_URL: 'nats://127.0.0.1:1',
    })
    await expect(both).rejects.toThrow(/CONTROLLER_SIMULATED_FLEET is .*without CONTROLLER_NATS_URL/)
  })
})
