/**
 * `headroom serve` with CONTROLLER_NATS_URL: a real process, a real broker, and the production core of a
 * server.
 */
import { connect } from '@nats-io/transport-node'
import { afterAll, describe, expect, it } from 'vitest'
import { ServerCore } from '../../gpu-server/core/server-core.ts'
import { createMemoryStorage } from '../../gpu-server/core/storage.ts'
import { nodeIdFromName } from '../../protocol/node-id.ts'
import { REAL_TIME } from '../../services/real-time.ts'
import { SimulatedDevice } from '../../simulator/fleet/simulated-device.ts'
import { OpenWorkload } from '../../simulator/fleet/open-workload.ts'
import { PacedClock } from '../../simulator/kernel/paced-clock.ts'
import { createSeededRandom } from '../../simulator/kernel/seeded-random.ts'
import { temporaryFolder } from '../support/headroom-command.ts'
import { startNatsServer, whyNoNatsServer } from '../support/nats-server.ts'
import { natsBus } from '../support/nats-world.ts'
import { getJson, serve } from '../support/served.ts'
import { node } from '../support/world-builder.ts'

interface Ready {
  readonly status: string
  readonly checks: readonly { readonly name: string; readonly ok: boolean; readonly detail: string }[]
}

const WITHIN = { timeout: 90_000, interval: 50 }

async function ready(url: string): Promise<{ status: number; checks: Ready['checks'] }> {
  const answer = await fetch(`${url}/readyz`)
  return { status: answer.status, checks: ((await answer.json()) as Ready).checks }
}

async function post(url: string, body?: unknown): Promise<{ status: number; body: Record<string, unknown> }> {
  const init =
    body === undefined ? {} : { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) }
  const answer = await fetch(url, { method: 'POST', ...init })
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
}

describe.skipIf(whyNoNatsServer() !== null)('headroom serve with a broker', { timeout: 300_000 }, () => {
  const folder = temporaryFolder()
  const ends: (() => void)[] = []
  afterAll(() => ends.forEach((end) => end()))

  /** A server whose tasks end after a second. */
  function startServer(url: string, name: string): void {
    const clock = new PacedClock(Date.now(), REAL_TIME)
    const workload = new OpenWorkload()
    const fields = node({ name, vramMib: 10_000 })
    const server = new ServerCore({
      nodeId: nodeIdFromName(name),
      name,
      address: `${name}.test`,
      hostSwapMib: 20_000,
      signalsWanted: true,
      deviceKind: 'simulated',
      allowExec: true,
      clock,
      random: createSeededRandom(name).stream('server'),
      bus: natsBus(url, { name }),
      device: new SimulatedDevice(clock, fields, {
        planOf: () => ({ kind: 'duration', ms: 1_000 }),
        allocStepsOf: (id) => workload.allocStepsOf(id),
      }),
      storage: createMemoryStorage(),
      areHeartbeatsElided: false,
    })
    server.start()
    clock.begin()
    ends.push(() => {
      server.stop()
      clock.stop()
    })
  }

  it('counts invalid messages by reason, and answers none of them', async () => {
    const broker = await startNatsServer()
    ends.push(() => void broker.kill())
    const { url, process: controller } = await serve(`${folder}/hostile`, {
      CONTROLLER_NATS_URL: broker.url,
      CONTROLLER_STORE_KIND: 'trial',
    })
    await expect.poll(() => ready(url).then(({ status }) => status), WITHIN).toBe(200)
    const raw = await connect({ servers: broker.url })
    let answers = 0
    for (const payload of [
      'no JSON',
      JSON.stringify({ v: 2 }),
      JSON.stringify({ v: 1 }),
      'x'.repeat(262_145),
    ]) {
      const subject = `gpu.v1.node.${nodeIdFromName('hostile')}.hello`
      await raw.request(subject, payload, { timeout: 200 }).then(
        () => (answers += 1),
        () => {},
      )
    }
    await raw.close()
    expect(answers).toBe(0)
    const metrics = await (await fetch(`${url}/metrics`)).text()
    for (const reason of ['not_json', 'wrong_version', 'bad_field', 'too_large']) {
      expect(metrics).toContain(`headroom_messages_refused_total{reason="${reason}"} 1\n`)
    }
    controller.kill('SIGTERM')
  })

  it('answers without a broker, reports it, and continues when the broker returns, repeatedly', async () => {
    const broker = await startNatsServer()
    await broker.kill()
    const served = await serve(`${folder}/broker`, {
      CONTROLLER_NATS_URL: broker.url,
      CONTROLLER_STORE_KIND: 'trial',
    })
    expect(served.output()).toContain(`GPU servers over ${broker.url}`)
    expect(await ready(served.url)).toMatchObject({
      status: 503,
      checks: expect.arrayContaining([
        expect.objectContaining({ name: 'store', ok: true }),
        expect.objectContaining({ name: 'broker', ok: false }),
      ]),
    })
    const task = { vram_mib: 1_000, command: ['true'] }
    const submitted = await post(`${served.url}/api/v1/tasks`, task)
    expect(submitted).toMatchObject({ status: 201, body: { state: 'pending' } })

    await broker.restart()
    await expect.poll(() => ready(served.url), WITHIN).toMatchObject({ status: 200 })
    startServer(broker.url, 'gpu-1')
    const stateOf = async (id: unknown): Promise<string> =>
      (await getJson<{ state: string }>(`${served.url}/api/v1/tasks/${String(id)}`)).state
    await expect.poll(() => stateOf(submitted.body['id']), WITHIN).toBe('completed')

    await broker.kill()
    await expect.poll(() => ready(served.url), WITHIN).toMatchObject({ status: 503 })
    const second = await post(`${served.url}/api/v1/tasks`, task)
    expect(second.status).toBe(201)
    expect(await getJson<{ total: number }>(`${served.url}/api/v1/tasks`)).toMatchObject({ total: 2 })
    await broker.restart()
    await expect.poll(() => stateOf(second.body['id']), WITHIN).toBe('completed')
    served.process.kill('SIGTERM')
    expect(await served.ended).toBe(0)
    await broker.kill()
  })
})
