/**
 * Three model servers of 16 GiB on one declared GPU of 24 GiB, and clients that know only their ports: those
 * of the tasks where the driver swaps them, those of their proxies where they move their VRAM themselves.
 */
import { request, type Agent, type IncomingMessage } from 'node:http'
import { freePort } from '../support/free-port.ts'
import { swapDurationMs, SWAP_PROFILES } from '../../simulator/scenario/swap-profiles.ts'
import { headroom, LiveCluster, until, type Member } from '../support/live-cluster.ts'

const PROFILE = 'pinned-gen4'
const VRAM_MIB = 16 * 1024
const INVENTORY = JSON.stringify({ gpus: [{ model: 'declared', vram_mib: 24 * 1024, swap: PROFILE }] })
/** A request that is not answered by then counts as hanging. */
const ANSWER_LIMIT_MS = 120_000

/** What one wake takes if nothing else does: a victim leaves, the task returns. */
export const SWAPS_MS =
  swapDurationMs(SWAP_PROFILES[PROFILE], 'out', VRAM_MIB) +
  swapDurationMs(SWAP_PROFILES[PROFILE], 'in', VRAM_MIB)

/** The same by hooks, at the rate of cli/gpu-server/model-memory.ts. */
export const HOOKS_MS = 2 * Math.ceil(VRAM_MIB / 20)

export interface ModelServer {
  readonly id: string
  /** Where clients connect. */
  readonly port: number
  /** Of its state: it must never change. */
  readonly checksum: string
}

export interface ServingWorld {
  readonly cluster: LiveCluster
  readonly gpuServer: Member
  readonly models: readonly [ModelServer, ModelServer, ModelServer]
}

export interface Answer {
  readonly ms: number
  readonly isReused: boolean
  /** The task itself had to wait for its VRAM. */
  readonly waited: boolean
}

/** @param proxies a range of ports; null: the driver swaps the tasks, and clients connect to them */
export async function startServing(proxies: string | null = null): Promise<ServingWorld> {
  const cluster = await LiveCluster.start()
  try {
    await cluster.send('PUT', '/config', {
      default_vram_overcommit_percent: 200,
      idle_swap_out_seconds: 1,
    })
    const range = proxies === null ? [] : ['--proxy-ports', proxies, '--proxy-address', '127.0.0.1']
    const gpuServer = await cluster.startServer('gpu', INVENTORY, {}, ...range)
    const models: ModelServer[] = []
    for (const name of ['chat', 'code', 'vision'])
      models.push(await startModel(cluster, name, proxies !== null))
    return { cluster, gpuServer, models: models as [ModelServer, ModelServer, ModelServer] }
  } catch (error) {
    await cluster.end()
    throw error
  }
}

async function startModel(cluster: LiveCluster, name: string, hasHooks: boolean): Promise<ModelServer> {
  const target = await freePort()
  const { id } = await cluster.send<{ id: string }>('POST', '/tasks', {
    name,
    vram_mib: VRAM_MIB,
    command: headroom('work', `serve=${target}`, ...(hasHooks ? ['hooks'] : [])),
    ports: [{ name: 'api', target, protocol: 'http' }],
    ...(hasHooks ? { swap_method: 'hooks' } : {}),
  })
  const port = hasHooks ? await proxyOf(cluster, id) : target
  let checksum = ''
  await until(`${name} answers`, async () => {
    checksum = await ask({ port }).then(
      (answer) => answer.checksum,
      () => '',
    )
    return checksum !== ''
  })
  return { id, port, checksum }
}

async function proxyOf(cluster: LiveCluster, id: string): Promise<number> {
  let address: string | null = null
  await until('it has an address', async () => {
    const answer = await cluster
      .get<{ ports: readonly { address: string | null }[] }>(`/tasks/${id}/assignment`)
      .catch(() => null)
    address = answer?.ports[0]?.address ?? null
    return address !== null
  })
  return Number(String(address).split(':').at(-1))
}

/** Rejects if there is no answer within the limit, or another one than the state gives. */
export async function ask(
  { port, checksum }: Pick<ModelServer, 'port'> & Partial<ModelServer>,
  agent?: Agent,
): Promise<Answer & { readonly checksum: string }> {
  const from = performance.now()
  const { response, isReused } = await new Promise<{ response: IncomingMessage; isReused: boolean }>(
    (resolve, reject) => {
      const sent = request({ port, host: '127.0.0.1', agent: agent ?? false, timeout: ANSWER_LIMIT_MS })
      sent.once('response', (answer) => resolve({ response: answer, isReused: sent.reusedSocket }))
      sent.once('timeout', () => sent.destroy(new Error(`no answer within ${ANSWER_LIMIT_MS / 1000} s`)))
      sent.once('error', reject)
      sent.end()
    },
  )
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) text += chunk
  const answer = JSON.parse(text) as { readonly checksum: string; readonly waited: boolean }
  if (checksum !== undefined && answer.checksum !== checksum) throw new Error(`its state changed: ${text}`)
  return { ms: performance.now() - from, isReused, checksum: answer.checksum, waited: answer.waited }
}

/** Wakes another server, so that this one leaves. */
export async function putToSleep({ cluster, models }: ServingWorld, model: ModelServer): Promise<void> {
  const other = models.find((each) => each !== model) ?? model
  await ask(other)
  await until(
    `${model.port} is swapped out`,
    async () => (await residencyOf(cluster, model)) === 'swapped_out',
  )
}

export async function residencyOf(cluster: LiveCluster, { id }: ModelServer): Promise<string> {
  return (await cluster.get<{ residency: string }>(`/tasks/${id}`)).residency
}
