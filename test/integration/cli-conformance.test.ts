import { expect, it } from 'vitest'
import type { RuleReport } from '../../simulator/experiment/conformance/conformance.ts'
import { headroom, headroomJson, temporaryFolder, write } from '../support/headroom-command.ts'
import { LiveCluster } from '../support/live-cluster.ts'
import { startNatsServer, whyNoNatsServer } from '../support/nats-server.ts'
import { startHeadroom } from '../support/running-command.ts'

const FLEET = `scenario: one
version: 1
seed: 1
fleet:
  - { count: 1, name: "sim-{i}", gpus: 1, gpu: { model: A100-40, vram_mib: 40960, swap: stock-driver } }
`

const NODE = '689e58b2-6690-543b-8052-df1cfbe5b04e'

it.skipIf(whyNoNatsServer() !== null)(
  'A simulated server over a real broker is examined, rule by rule',
  async () => {
    const broker = await startNatsServer()
    const file = write(temporaryFolder(), 'one.scenario.yaml', FLEET)
    const fleet = startHeadroom(['sim', 'serve', file, '--nats', broker.url])
    const [, nodeId = ''] = await fleet.says(/sim-0 {2}([0-9a-f-]{36})/)
    const args = ['conformance', '--nats', broker.url, '--node', nodeId, '--heartbeat', '300', '--only', 'R7']
    const { reports } = await headroomJson<{ readonly reports: readonly RuleReport[] }>(args)
    expect(reports.length).toBeGreaterThan(2)
    expect(reports.filter(({ verdict }) => verdict !== 'kept')).toEqual([])
    fleet.process.kill('SIGTERM')
    expect(await fleet.ended).toBe(0)
  },
)

it.skipIf(whyNoNatsServer() !== null)(
  'Preparations and channels of a real server are examined',
  { timeout: 300_000 },
  async () => {
    const live = await LiveCluster.start()
    try {
      const inventory = 'gpus:\n  - { vram_mib: 8Gi, swap: stock-driver }\n'
      await live.startServer('examined', inventory, {}, '--allow-attach', '--container-runtime', 'none')
      const nodes = await live.get<{ readonly items: readonly { readonly node_id: string }[] }>('/nodes')
      const id = nodes.items[0]?.node_id ?? ''
      await live.controller.end()
      const reports: RuleReport[] = []
      for (const rule of ['Prepare', 'Channels']) {
        const args = ['conformance', '--nats', live.natsUrl, '--node', id, '--only', rule]
        const timing = ['--heartbeat', '300', '--lease', '5000']
        type Examined = { readonly reports: readonly RuleReport[] }
        reports.push(...(await headroomJson<Examined>([...args, ...timing])).reports)
      }
      expect(reports.filter(({ verdict }) => verdict !== 'kept')).toEqual([])
      expect(reports).toHaveLength(7)
    } finally {
      await live.end()
    }
  },
)

it('A missing broker is reported, the rules are listed, and phases are explained', async () => {
  const unset = { CONTROLLER_NATS_URL: '' }
  expect(await headroom(['conformance', '--node', NODE], { env: unset })).toMatchObject({
    code: 2,
    stderr: /which broker\? Set CONTROLLER_NATS_URL/,
  })
  expect(await headroom(['conformance', '--node', NODE, '--only', 'R99'])).toMatchObject({
    code: 2,
    stderr: /--only R99: there are R6, R3/,
  })
  expect(await headroom(['work', 'busy=soon'])).toMatchObject({
    code: 2,
    stderr: /'busy=soon' is not a phase/,
  })
  expect(await headroom(['work', 'busy=1ms', 'idle=1ms'], { env: { HEADROOM_SOCKET: '' } })).toMatchObject({
    code: 0,
    stdout: 'busy 1ms\nidle 1ms\n',
  })
})

it(
  'Without a broker, nothing is tested and reported as such; an invalid id is refused',
  { timeout: 300_000 },
  async () => {
    // No process listens on port 9.
    expect(await headroom(['conformance', '--node', NODE, '--nats', 'nats://127.0.0.1:9'])).toMatchObject({
      code: 3,
      stdout: '',
      stderr: /no broker answered within 10 s: nothing was tested/,
    })
    expect(await headroom(['conformance', '--node', 'gpu-1', '--nats', 'nats://127.0.0.1:9'])).toMatchObject({
      code: 2,
      stderr: /'gpu-1' is invalid. It must be a lowercase UUID/,
    })
  },
)
