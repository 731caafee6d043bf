/** Secrets and environment variables over REST: who reads what, and what is refused. */
import { beforeEach, describe, expect, it } from 'vitest'
import { randomBytes } from 'node:crypto'
import { sealerOf } from '../../controller/adapters/key-file-sealer.ts'
import { MAX_SECRETS_OF_OWNER } from '../../controller/engine/inputs/commands/access-registry.ts'
import { requireEnvironmentRoom } from '../../controller/api/tasks/environment.ts'
import { accessWorld, type AccessWorld, type Asked } from '../support/access-world.ts'

const sealer = sealerOf(randomBytes(32))
const VALUE = 'correct horse battery staple'
const TASK = { vram_mib: 100, command: ['train'] }

let world: AccessWorld
let alice: string
let bob: string
let operator: string
let admin: string

beforeEach(async () => {
  world = await accessWorld({ sealer })
  admin = await world.token('admin', { name: 'root' })
  alice = await world.token('submitter', { name: 'alice' })
  bob = await world.token('submitter', { name: 'bob' })
  operator = await world.token('operator', { name: 'op' })
})

const ask = async (token: string, method: string, path: string, body?: unknown, more: Asked = {}) => {
  const answer = await world.ask(method, path, { token, ...(body === undefined ? {} : { body }), ...more })
  return {
    status: answer.statusCode,
    body: (answer.body === '' ? null : answer.json()) as unknown,
    text: answer.body,
  }
}
const submit = (token: string, fields: object) => ask(token, 'POST', '/api/v1/tasks', { ...TASK, ...fields })

describe('secrets', () => {
  it('belong to one owner, and no request returns their value', async () => {
    expect(await ask(alice, 'PUT', '/api/v1/secrets/HF_TOKEN', { value: VALUE })).toMatchObject({
      status: 200,
      body: { name: 'HF_TOKEN' },
    })
    const own = await ask(alice, 'GET', '/api/v1/secrets')
    expect(own.body).toMatchObject({ items: [{ name: 'HF_TOKEN' }], total: 1 })
    expect((await ask(bob, 'GET', '/api/v1/secrets')).body).toMatchObject({ items: [] })
    expect((await ask(admin, 'GET', '/api/v1/secrets')).body).toMatchObject({ items: [] })
    expect((await ask(bob, 'DELETE', '/api/v1/secrets/HF_TOKEN')).status).toBe(404)
    expect((await submit(bob, { secrets: { T: 'HF_TOKEN' } })).body).toMatchObject({
      code: 'conflict',
      detail: expect.stringContaining('is not one of your secrets'),
    })
    expect(JSON.stringify(await world.store.load())).not.toContain(VALUE)
    expect(own.text).not.toContain(VALUE)
    expect((await ask(alice, 'DELETE', '/api/v1/secrets/HF_TOKEN')).status).toBe(204)
    expect((await world.store.load()).secrets).toEqual([])
  })

  it('are refused over a connection on which others can read them', async () => {
    const put = (more: Asked) => ask(alice, 'PUT', '/api/v1/secrets/A', { value: VALUE }, more)
    expect(await put({ from: '10.0.0.7' })).toMatchObject({
      status: 403,
      body: { detail: expect.stringContaining('without TLS') },
    })
    expect((await put({ headers: { 'x-forwarded-for': '10.0.0.7' } })).status).toBe(403)
    expect((await ask(alice, 'GET', '/api/v1/secrets')).body).toMatchObject({ items: [] })
  })

  it('are limited in number and size, and their names are checked', async () => {
    for (let i = 0; i < MAX_SECRETS_OF_OWNER; i++)
      await ask(alice, 'PUT', `/api/v1/secrets/S${i}`, { value: 'x' })
    expect((await ask(alice, 'PUT', '/api/v1/secrets/ONE_MORE', { value: 'x' })).status).toBe(409)
    expect((await ask(alice, 'PUT', '/api/v1/secrets/S0', { value: 'y' })).status).toBe(200)
    expect((await ask(bob, 'PUT', '/api/v1/secrets/S0', { value: 'y' })).status).toBe(200)
    expect((await ask(bob, 'PUT', '/api/v1/secrets/-x', { value: 'y' })).status).toBe(400)
    expect((await ask(bob, 'PUT', '/api/v1/secrets/B', { value: 'x'.repeat(65_537) })).status).toBe(400)
  })
})

describe('the environment of a task', () => {
  it('shows names to all readers, and values to its owner and admins only', async () => {
    await ask(alice, 'PUT', '/api/v1/secrets/KEY', { value: VALUE })
    const made = await submit(alice, { env: { B: VALUE, A: '1' }, secrets: { API_KEY: 'KEY' } })
    expect(made).toMatchObject({ status: 201, body: { env_names: ['A', 'B'], secrets: { API_KEY: 'KEY' } } })
    const { id } = made.body as { readonly id: string }
    expect(made.text).not.toContain(VALUE)
    const env = `/api/v1/tasks/${id}/env`
    expect(await ask(alice, 'GET', env)).toMatchObject({ status: 200, body: { env: { A: '1', B: VALUE } } })
    expect((await ask(admin, 'GET', env)).status).toBe(200)
    expect((await ask(operator, 'GET', env)).status).toBe(403)
    expect((await ask(bob, 'GET', env)).status).toBe(403)
    const kept = JSON.stringify(await world.store.load())
    expect(kept).toContain('"sealed":"')
    expect(kept).not.toContain(VALUE)
    await ask(alice, 'DELETE', `/api/v1/tasks/${id}`)
    expect((await ask(alice, 'GET', env)).status).toBe(404)
    expect(await world.store.reads.task(id)).toMatchObject({
      environment: { names: ['A', 'B'], secrets: { API_KEY: 'KEY' }, sealed: null },
    })
  })

  it('is limited for all tasks of an owner, and for all tasks', async () => {
    await submit(alice, { env: { A: 'x'.repeat(1_000_000 / 20) } })
    const [task] = [...world.views.openTasks()]
    const environment = task?.spec.environment ?? null
    const size = environment?.sealed?.length ?? 0
    expect(size).toBeGreaterThan(50_000)
    const room = (owner: string | null, ofAll: number, ofOwner: number) => () =>
      requireEnvironmentRoom(world.views.openTasks(), environment, owner, { ofAll, ofOwner })
    expect(room('alice', 2 * size, 2 * size)).not.toThrow()
    expect(room('alice', 2 * size, 2 * size - 1)).toThrow(
      /open tasks of alice would exceed their limit of 0 MiB/,
    )
    expect(room('bob', 2 * size, size)).not.toThrow()
    expect(room('bob', 2 * size - 1, size)).toThrow(/all open tasks would exceed their limit/)
  })

  it.each([
    ['a lease', { command: undefined, env: { A: '1' } }, 'a lease has none'],
    ['a variable of the server', { env: { CUDA_VISIBLE_DEVICES: '0' } }, 'the GPU server sets it'],
    ['a variable of Headroom', { secrets: { HEADROOM_SOCKET: 'x' } }, 'the GPU server sets it'],
    ['a name that begins with a digit', { env: { '1A': 'x' } }, 'env'],
    ['a value with NUL', { env: { A: 'x\0y' } }, 'env'],
    ['too many bytes', { env: { A: 'x'.repeat(40_000), B: 'y'.repeat(40_000) } }, '65536 bytes'],
    ['the same variable twice', { env: { A: '1' }, secrets: { A: 'missing' } }, 'both set A'],
  ])('is refused for %s', async (_what, fields, detail) => {
    const refused = await submit(alice, fields)
    expect(refused).toMatchObject({ status: 400, body: { detail: expect.stringContaining(detail) } })
    expect((await world.store.load()).openTasks).toEqual([])
  })
})
