/** Images that the engine pulls by tag from registries: before the start, with a login or without. */
import assert from 'node:assert/strict'
import { cpSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { OciRegistry, REGISTRY_PORTS } from '../support/oci-registry.ts'
import { until, type LiveCluster } from '../support/live-cluster.ts'
import { cancel, outputOf, reaches, submit, taskOf, type Task } from './task-client.ts'

const [OPEN, PRIVATE, AWAY] = REGISTRY_PORTS
const LOGIN = 'puller:s3cret-9d'
const TRIES = 5
const TRUE = ['sh', '-c', ':']

/** A file of logins for `team` of the private registry only. */
export function credentials(folder: string): string {
  const path = join(folder, 'registries.json')
  const auth = Buffer.from(LOGIN).toString('base64')
  writeFileSync(path, JSON.stringify({ auths: { [`127.0.0.1:${PRIVATE}/team`]: { auth } } }), { mode: 0o600 })
  return path
}

export async function pulls(live: LiveCluster, folder: string): Promise<void> {
  const root = join(folder, 'served')
  cpSync(join(folder, 'rootfs'), root, { recursive: true, verbatimSymlinks: true })
  writeFileSync(join(root, 'etc/served'), 'from the registry\n')
  const open = new OciRegistry({ port: OPEN, root })
  const guarded = new OciRegistry({ port: PRIVATE, root, login: LOGIN })
  const away = new OciRegistry({ port: AWAY, root })
  try {
    await Promise.all([open.start(), guarded.start()])
    await pullsBeforeTheStart(live, open)
    await pullsWithLogin(live, guarded)
    await endsWithoutImage(live)
    await waitsForRegistry(live, away)
  } finally {
    await Promise.all([open.end(), guarded.end(), away.end()])
  }
}

async function pullsBeforeTheStart(live: LiveCluster, registry: OciRegistry): Promise<void> {
  const digest = registry.push('team/train', 'v1')
  const release = registry.hold()
  const image = `127.0.0.1:${OPEN}/team/train:v1`
  const id = await submit(live, 'pulled', ['sh', '-c', 'busybox cat /etc/served'], { image })
  await until('the engine asks for the image', () =>
    registry.served.some((path) => path.includes('manifests')),
  )
  const { state, attempt, wait } = await taskOf(live, id)
  assert.deepEqual([state, attempt, wait?.reason], ['pending', 0, 'PREPARING'])
  assert.equal(await committedMib(live), 0)
  release()
  const { image_digest: ran } = await reaches(live, id, 'completed')
  assert.equal(ran, digest)
  assert.equal(await outputOf(live, id), 'from the registry\n')
  // Its image is here now: the next one asks for nothing.
  const asked = registry.served.length
  await reaches(live, await submit(live, 'again', TRUE, { image }), 'completed')
  assert.equal(registry.served.length, asked)
}

async function committedMib(live: LiveCluster): Promise<number> {
  const { items } = await live.get<{
    readonly items: readonly { readonly vram: { readonly committed_mib: number } }[]
  }>('/nodes')
  return items.reduce((sum, { vram }) => sum + vram.committed_mib, 0)
}

async function pullsWithLogin(live: LiveCluster, registry: OciRegistry): Promise<void> {
  registry.push('team/private', 'v1')
  registry.push('other/private', 'v1')
  const at = (path: string): string => `127.0.0.1:${PRIVATE}/${path}/private:v1`
  await reaches(live, await submit(live, 'login', TRUE, { image: at('team') }), 'completed')
  assert.ok(registry.served.length > 0)
  const served = registry.served.length
  const ended = await endedOf(live, 'no-login', at('other'))
  assert.match(ended.end_reason ?? '', /the registry does not have it, or requires a login/)
  assert.doesNotMatch(JSON.stringify(ended), /s3cret/)
  assert.equal(registry.served.length, served)
}

async function endsWithoutImage(live: LiveCluster): Promise<void> {
  const image = `127.0.0.1:${OPEN}/team/train:v2`
  const { end_reason: reason } = await endedOf(live, 'no-tag', image)
  assert.ok(
    reason?.startsWith(`image ${image}: the registry does not have it, or requires a login: `),
    reason ?? '',
  )
}

/** A reason of the task: it ends at once. */
async function endedOf(live: LiveCluster, name: string, image: string): Promise<Task> {
  const ended = await reaches(live, await submit(live, name, TRUE, { image, max_requeues: TRIES }), 'failed')
  assert.deepEqual([ended.end_code, ended.attempt], ['image_not_available', 0])
  return ended
}

/** A reason of the host, which stays open for other tasks; the task starts once the registry is back. */
async function waitsForRegistry(live: LiveCluster, registry: OciRegistry): Promise<void> {
  const image = `127.0.0.1:${AWAY}/team/train:v1`
  const ids: string[] = []
  for (const name of ['one', 'two', 'three', 'four'])
    ids.push(await submit(live, `waits-${name}`, TRUE, { image, max_requeues: 0 }))
  const refused = (task: Task): boolean =>
    task.start_refusals.some(({ cause, code }) => cause === 'host' && code === 'registry_unreachable')
  for (const id of ids) await until('its registry is away', async () => refused(await taskOf(live, id)))
  await reaches(live, await submit(live, 'meanwhile', TRUE), 'completed')
  const [first = '', ...others] = ids
  await cancel(live, ...others)
  registry.push('team/train', 'v1')
  await registry.start()
  // Each refusal doubles the pause before the next try.
  await reaches(live, first, 'completed', 300_000)
}
