/** Containers of tasks over the API of an engine that records its requests. */
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { EngineContainers, type PullPolicy, digestOf } from '../../gpu-server/container/engine-containers.ts'
import { partsOf } from '../../gpu-server/container/engine-api.ts'
import { loginFor, readLogins } from '../../gpu-server/container/registry-credentials.ts'
import { findEngine } from '../../gpu-server/container/find-engine.ts'
import type { ContainerStart } from '../../gpu-server/guard/containers.ts'
import { ENGINE_INFO, FakeEngine, IMAGE_ID } from '../support/fake-engine.ts'

const START: ContainerStart = {
  name: 'headroom-0123456789ab',
  taskId: 'task 1',
  attempt: 2,
  epoch: 7,
  imageId: IMAGE_ID,
  program: '/usr/lib/headroom/headroom-guard',
  socket: '/state/guards/task.2/init',
  workFolder: '/state/work/task.2',
  user: { uid: 200_003, gid: 200_003 },
  groups: [200_003],
  mounts: [],
  devices: ['GPU-11111111-2222-3333-4444-555555555555', 'GPU-66666666-7777-8888-9999-000000000000'],
}

let engine: FakeEngine
const notes: string[] = []
const opened: EngineContainers[] = []
beforeEach(async () => {
  engine = await new FakeEngine().start()
  notes.length = 0
})
afterEach(async () => {
  for (const each of opened.splice(0)) each.close()
  await engine.end()
})

function containers(
  kind: 'docker' | 'podman' = 'docker',
  pull: PullPolicy = 'missing',
  stateFolder = '/state',
) {
  const { socketPath } = engine
  const found = { kind, version: '28', socketPath, isRootless: false, canLimit: true }
  const made = new EngineContainers({ engine: found, stateFolder, pull, onNote: (line) => notes.push(line) })
  opened.push(made)
  return made
}

/** Of both dialects. */
interface CreateRequest {
  readonly HostConfig: Readonly<Record<string, unknown>>
  readonly Env: unknown
  readonly Labels: unknown
  readonly devices: unknown
  readonly env: unknown
}

/** What the engine was asked to create. */
async function created(start: Partial<ContainerStart> = {}, kind: 'docker' | 'podman' = 'docker') {
  expect(await containers(kind).start({ ...START, ...start })).toEqual({ error: null })
  return engine.callsOf('POST', /\/containers\/create$/)[0]?.body as CreateRequest
}

describe('a container of a task', () => {
  it('gets exactly the GPUs of the placement from Docker, whatever the image wants', async () => {
    const { HostConfig, Env } = await created()
    expect(HostConfig['DeviceRequests']).toEqual([
      { DeviceIDs: START.devices, Capabilities: [['gpu', 'compute', 'utility']] },
    ])
    expect(Env).toEqual([`NVIDIA_VISIBLE_DEVICES=${START.devices.join(',')}`])
    expect(JSON.stringify(HostConfig)).not.toMatch(/"Count"|"Devices"|\/dev\//)
  })

  it('gets exactly the GPUs of the placement from podman, by their CDI names', async () => {
    const { devices, env } = await created({}, 'podman')
    expect(devices).toEqual(START.devices.map((id) => ({ path: `nvidia.com/gpu=${id}` })))
    expect(env).toEqual({ NVIDIA_VISIBLE_DEVICES: START.devices.join(',') })
  })

  it('on declared GPUs gets no device, and NVIDIA’s runtime is told so', async () => {
    const docker = await created({ devices: [] })
    expect(docker.HostConfig['DeviceRequests']).toEqual([])
    expect(docker.Env).toEqual(['NVIDIA_VISIBLE_DEVICES=void'])
    engine.calls.length = 0
    const podman = await created({ devices: [] }, 'podman')
    expect(podman.devices).toEqual([])
    expect(podman.env).toEqual({ NVIDIA_VISIBLE_DEVICES: 'void' })
  })

  it.each(['docker', 'podman'] as const)(
    'mounts only the data folders it asked for, with %s',
    async (kind) => {
      const mounts = [
        { name: 'datasets', source: '/srv/datasets', isReadOnly: true },
        { name: 'scratch', source: '/srv/scratch', isReadOnly: false },
      ]
      const request = (await created({ mounts }, kind)) as unknown as {
        readonly HostConfig?: { readonly Mounts: readonly unknown[] }
        readonly mounts?: readonly unknown[]
      }
      const all = request.HostConfig?.Mounts ?? request.mounts ?? []
      expect(all).toHaveLength(5)
      expect(all.slice(3)).toMatchObject(
        kind === 'docker'
          ? [
              { Type: 'bind', Source: '/srv/datasets', Target: '/mnt/datasets', ReadOnly: true },
              { Type: 'bind', Source: '/srv/scratch', Target: '/mnt/scratch', ReadOnly: false },
            ]
          : [
              { source: '/srv/datasets', destination: '/mnt/datasets', options: ['bind', 'rprivate', 'ro'] },
              { source: '/srv/scratch', destination: '/mnt/scratch', options: ['bind', 'rprivate', 'rw'] },
            ],
      )
    },
  )

  it('runs as the user of the attempt without any privilege, in its own network', async () => {
    const docker = await created()
    expect(docker).toMatchObject({
      Image: IMAGE_ID,
      User: '200003:200003',
      Entrypoint: ['/headroom/guard'],
      Healthcheck: { Test: ['NONE'] },
      HostConfig: {
        Privileged: false,
        CapAdd: [],
        CapDrop: ['ALL'],
        SecurityOpt: ['no-new-privileges'],
        NetworkMode: expect.stringMatching(/^headroom-tasks-[0-9a-f]{16}$/) as string,
        IpcMode: 'private',
        PidsLimit: 4_096,
        RestartPolicy: { Name: 'no' },
      },
    })
    engine.calls.length = 0
    expect(await created({}, 'podman')).toMatchObject({
      user: '200003:200003',
      privileged: false,
      cap_drop: ['ALL'],
      no_new_privileges: true,
      netns: { nsmode: 'bridge' },
      Networks: { [START.name]: {} },
      pidns: { nsmode: 'private' },
      ipcns: { nsmode: 'private' },
      resource_limits: { pids: { limit: 4_096 } },
      restart_policy: 'no',
    })
  })

  it('has the limits of the task, without swap space of the host, or none', async () => {
    const limits = { memoryMib: 64, cpus: 2, pids: 100 }
    expect((await created({ limits })).HostConfig).toMatchObject({
      Memory: 64 << 20,
      MemorySwap: 64 << 20,
      CpuPeriod: 100_000,
      CpuQuota: 200_000,
      PidsLimit: 100,
    })
    engine.calls.length = 0
    expect(await created({ limits }, 'podman')).toMatchObject({
      resource_limits: {
        memory: { limit: 64 << 20, swap: 64 << 20 },
        cpu: { period: 100_000, quota: 200_000 },
        pids: { limit: 100 },
      },
    })
    engine.calls.length = 0
    expect((await created()).HostConfig).not.toHaveProperty('Memory')
    expect((await created()).HostConfig).not.toHaveProperty('CpuQuota')
  })

  it('sees three paths of the host: its folder, and two that it cannot write', async () => {
    const { HostConfig } = await created()
    const mounts = HostConfig['Mounts'] as readonly { Source: string; Target: string; ReadOnly: boolean }[]
    expect(mounts.map(({ Source, Target, ReadOnly }) => [Source, Target, ReadOnly])).toEqual([
      [START.program, '/headroom/guard', true],
      [START.socket, '/headroom/init', true],
      [START.workFolder, '/headroom/work', false],
    ])
    expect(HostConfig).not.toHaveProperty('Binds')
  })

  it('carries the labels of its server, task, attempt and epoch', async () => {
    expect((await created()).Labels).toMatchObject({
      'io.headroom.task': 'task 1',
      'io.headroom.attempt': '2',
      'io.headroom.epoch': '7',
    })
    expect(engine.callsOf('POST', /start$/).map(({ path }) => path)).toEqual([
      '/containers/headroom-0123456789ab/start',
    ])
  })
})

describe('an image', () => {
  const prepared = (pull: PullPolicy, image: string, signal = new AbortController().signal) =>
    containers('docker', pull).prepare(image, { signal })
  const pulls = () => engine.callsOf('POST', /^\/images\/create$/).map(({ query }) => query.toString())

  it('that the host has is not pulled, and is run by its id in its own folder', async () => {
    expect(await prepared('missing', 'team/train:1')).toEqual({
      error: null,
      imageId: IMAGE_ID,
      workingDirectory: '/app',
      digest: null,
    })
    expect(pulls()).toEqual([])
  })

  it('that was prepared for the attempt is not pulled again under the policy always', async () => {
    const { signal } = new AbortController()
    await containers('docker', 'always').prepare('team/train:1', { signal, isPrepared: true })
    expect(pulls()).toEqual([])
  })

  it('reports the bytes of the layers that the engine has named', async () => {
    const layer = (id: string, status: string, current = 0, total = 0) =>
      `${JSON.stringify({ id, status, progressDetail: { current, total } })}\n`
    const text =
      layer('v1', 'Pulling from team/absent') +
      layer('a', 'Downloading', 10, 100) +
      layer('b', 'Downloading', 5, 50) +
      'no JSON\n' +
      layer('a', 'Download complete') +
      layer('b', 'Pull complete')
    engine.answer = ({ path }) => (path === '/images/create' ? { status: 200, text } : null)
    const seen: (readonly [number, number | null])[] = []
    await containers().prepare('team/absent:1', {
      signal: new AbortController().signal,
      onProgress: (done, total) => seen.push([done, total]),
    })
    expect(seen).toEqual([
      [10, 100],
      [15, 150],
      [105, 150],
      [150, 150],
    ])
  })

  it('has the digest of its own registry, and of no other', () => {
    const [one, other] = [`sha256:${'1'.repeat(64)}`, `sha256:${'2'.repeat(64)}`]
    const known = [`mirror.example/library/python@${one}`, `docker.io/library/python@${other}`]
    expect(digestOf('python:3.12', known)).toBe(other)
    expect(digestOf('docker.io/library/python', known)).toBe(other)
    expect(digestOf('mirror.example/library/python:3.12', known)).toBe(one)
    expect(digestOf('mirror.example:5000/library/python:3.12', known)).toBeNull()
    expect(digestOf('python', ['docker.io/library/python@sha256:short'])).toBeNull()
  })

  describe('of a private registry', () => {
    const file = () => join(engine.folder, 'config.json')
    const auth = (login: string) => ({ auth: Buffer.from(login).toString('base64') })
    const write = (content: unknown, mode = 0o600): void => {
      writeFileSync(file(), JSON.stringify(content), { mode })
      chmodSync(file(), mode)
    }
    const pull = (image: string) =>
      new EngineContainers({
        engine: {
          kind: 'docker',
          version: '28',
          socketPath: engine.socketPath,
          isRootless: false,
          canLimit: true,
        },
        stateFolder: '/state',
        pull: 'always',
        credentials: file(),
        onNote: () => {},
      }).prepare(image, { signal: new AbortController().signal })
    const sent = () =>
      engine.calls.map(({ path, login }) => [
        path,
        login === null ? null : (JSON.parse(Buffer.from(login, 'base64url').toString()) as unknown),
      ])

    it('is pulled with the login of its registry, which no other request and registry gets', async () => {
      write({
        auths: { 'reg.example:5000': auth('bob:pass:word'), 'https://index.docker.io/v1/': auth('hub:x') },
      })
      expect(await pull('reg.example:5000/team/train:1')).toMatchObject({ error: null })
      await pull('other.example/team/train:1')
      await pull('team/train:1')
      expect(sent().filter(([, login]) => login !== null)).toEqual([
        ['/images/create', { username: 'bob', password: 'pass:word', serveraddress: 'reg.example:5000' }],
        ['/images/create', { username: 'hub', password: 'x', serveraddress: 'docker.io' }],
      ])
      expect(sent().filter(([path]) => path === '/images/create')).toHaveLength(3)
    })

    it('is sent with the padding of base64, without which Docker ignores it, in the alphabet of URLs', () => {
      for (const login of ['a:b', 'a:bc', 'a:bcd', 'a:??>>~~']) {
        write({ auths: { 'quay.io': auth(login) } })
        const sent = loginFor('quay.io/a', file()) ?? ''
        expect([sent.length % 4, /^[\w-]+=*$/.test(sent)]).toEqual([0, true])
        expect(JSON.parse(Buffer.from(sent, 'base64url').toString())).toMatchObject({
          password: login.slice(2),
        })
      }
    })

    it('uses the longest entry that names the beginning of the image, and no part of a name', () => {
      write({ auths: { 'quay.io': auth('a:1'), 'quay.io/team': auth('b:2') } })
      const user = (image: string) => {
        const login = loginFor(image, file())
        return login === null
          ? null
          : (JSON.parse(Buffer.from(login, 'base64url').toString()) as { username: string }).username
      }
      expect(['quay.io/team/a', 'quay.io/teams/a', 'quay.io.evil/a', 'a'].map(user)).toEqual([
        'b',
        'a',
        null,
        null,
      ])
    })

    it.each([
      ['others may read', { auths: { a: auth('u:p') } }, 0o640, 'other users can read it: chmod 600'],
      ['has no auths', {}, 0o600, 'it has no auths'],
      ['names a helper', { auths: { a: {} } }, 0o600, 'an entry of auths has no auth (helpers are not run)'],
      [
        'has no password',
        { auths: { a: auth('SECRET') } },
        0o600,
        'an auth is not the base64 encoding of USER:PASSWORD',
      ],
    ])(
      'is not pulled with a file that %s, and the reason has nothing of its content',
      async (_, content, mode, why) => {
        write(content, mode)
        expect(() => readLogins(file())).toThrow(`registry credentials ${file()}: ${why}`)
        expect(await pull('a/b')).toEqual({
          error: `registry credentials ${file()}: ${why}`,
          refused: { cause: 'host', code: 'no_container_runtime' },
        })
        expect(engine.calls).toEqual([])
      },
    )
  })

  it('is here if no pull is needed; the engine is asked about it once a minute', async () => {
    const asked = containers()
    const list = ['team/train:1', 'absent:1']
    expect(await asked.imagesHere(list)).toEqual(['team/train:1'])
    expect(await asked.imagesHere(list)).toEqual(['team/train:1'])
    expect(engine.callsOf('GET', /^\/images\//)).toHaveLength(2)
    expect(await containers('docker', 'always').imagesHere(list)).toEqual([])
    await engine.end()
    expect(await containers().imagesHere(list)).toEqual([])
  })

  it('is pulled as the policy says, with one tag', async () => {
    await prepared('missing', 'reg.example:5000/a/b')
    expect(await prepared('always', 'team/train:1')).toMatchObject({ error: null })
    expect(pulls()).toEqual([
      'fromImage=reg.example%3A5000%2Fa%2Fb&tag=latest',
      'fromImage=team%2Ftrain&tag=1',
    ])
  })

  it('that is missing under the policy never is a reason of the task', async () => {
    expect(await prepared('never', 'absent:1')).toEqual({
      error: 'image absent:1: not found on this host',
      refused: { cause: 'task', code: 'image_not_available' },
    })
    expect(pulls()).toEqual([])
  })

  const refusedBy = async (message: string, status = 500) => {
    engine.answer = ({ path }) => (path === '/images/create' ? { status, body: { message } } : null)
    const answer = await prepared('missing', 'reg.example/absent:1')
    return answer.error === null ? null : answer.refused
  }

  it.each([
    ['docker, no such tag', 'manifest for reg.example/absent:1 not found: manifest unknown'],
    ['docker, no login', 'Head "https://reg.example/v2/absent/manifests/1": no basic auth credentials'],
    ['docker, no right', 'pull access denied for absent, repository does not exist'],
    ['podman, no such tag', 'initializing source docker://a:1: reading manifest 1 in a: manifest unknown'],
    ['podman, no login', 'unable to retrieve auth token: invalid username/password: unauthorized'],
    ['another processor', 'no matching manifest for linux/amd64 in the manifest list entries'],
  ])('that the registry does not have for this host is a reason of the task: %s', async (_, message) => {
    expect(await refusedBy(message)).toEqual({ cause: 'task', code: 'image_not_found' })
  })

  it.each([
    'Get "https://reg.example/v2/": dial tcp 192.0.2.1:443: connect: connection refused',
    'pinging container registry reg.example: Get "https://reg.example/v2/": dial tcp: lookup: no such host',
    'Get "https://reg.example/v2/": http: server gave HTTP response to HTTPS client',
    'received unexpected HTTP status: 503 Service Unavailable',
    'toomanyrequests: You have reached your pull rate limit; manifest unknown',
  ])('whose registry does not answer is a reason of the host: %s', async (message) => {
    expect(await refusedBy(message)).toEqual({ cause: 'host', code: 'registry_unreachable' })
  })

  it('that the engine refuses in other words may appear, also when the answer began well', async () => {
    const code = 'image_not_available'
    expect(await refusedBy('no space left on device')).toEqual({ cause: 'task', code })
    engine.answer = ({ path }) =>
      path === '/images/create'
        ? { status: 200, text: '{"status":"Pulling"}\n{"error":"manifest\\nunknown"}\n' }
        : null
    expect(await prepared('missing', 'absent:1')).toEqual({
      error: 'image absent:1: the registry does not have it, or requires a login: manifest unknown',
      refused: { cause: 'task', code: 'image_not_found' },
    })
  })

  it('whose pull gets no answer is a reason of its registry if the engine still answers', async () => {
    engine.answer = ({ path }) => (path === '/images/create' ? 'drop' : null)
    expect(await prepared('missing', 'absent:1')).toMatchObject({
      refused: { cause: 'host', code: 'registry_unreachable' },
    })
    engine.answer = ({ path }) => {
      if (path !== '/images/create') return null
      engine.answer = () => 'drop'
      return 'drop'
    }
    expect(await prepared('missing', 'absent:1')).toMatchObject({
      refused: { cause: 'host', code: 'no_container_runtime' },
    })
  })

  it('on a host whose engine is gone is a reason of the host', async () => {
    const gone = containers()
    await engine.end()
    expect(await gone.prepare('team/train:1', { signal: new AbortController().signal })).toMatchObject({
      refused: { cause: 'host', code: 'no_container_runtime' },
    })
  })

  it('is not pulled any further once the attempt is stopped', async () => {
    engine.answer = ({ path }) => (path === '/images/create' ? 'never' : null)
    const stop = new AbortController()
    const pulling = prepared('missing', 'absent:1', stop.signal)
    await expect.poll(() => pulls().length).toBe(1)
    stop.abort()
    expect((await pulling).error).toMatch(/abort/i)
  })

  it('is named by its parts', () => {
    expect(partsOf('busybox')).toEqual({ name: 'busybox', tag: 'latest' })
    expect(partsOf('reg.example:5000/a')).toEqual({ name: 'reg.example:5000/a', tag: 'latest' })
    expect(partsOf('reg.example:5000/a:v1@sha256:ab')).toEqual({
      name: 'reg.example:5000/a',
      tag: 'sha256:ab',
    })
  })
})

describe('the network of a container', () => {
  it('is one of Docker for all tasks, which keeps them apart, and is made again after a prune', async () => {
    const both = containers()
    expect(await Promise.all([both.start(START), both.start(START)])).toEqual([
      { error: null },
      { error: null },
    ])
    const made = () => engine.callsOf('POST', /^\/networks\/create$/)
    expect(made().map(({ body }) => body)).toEqual([
      {
        Name: expect.stringMatching(/^headroom-tasks-/) as string,
        CheckDuplicate: true,
        Driver: 'bridge',
        Options: { 'com.docker.network.bridge.enable_icc': 'false' },
        Labels: { 'io.headroom.server': expect.stringMatching(/^[0-9a-f]{16}$/) as string },
      },
    ])
    engine.networks.clear()
    expect(await both.start(START)).toEqual({ error: null })
    expect(made()).toHaveLength(2)
    await both.remove(START.name)
    expect(engine.networks.size).toBe(1)
  })

  it('is one of podman for each, and is removed with the container, after a crash too', async () => {
    const all = containers('podman')
    await all.start(START)
    expect([...engine.networks.values()]).toMatchObject([
      { name: START.name, driver: 'bridge', dns_enabled: false, options: { isolate: 'true' } },
    ])
    await all.remove(START.name)
    expect([...engine.networks]).toEqual([])
    engine.networks.set('headroom-left', {})
    all.removeOthers(() => false)
    await expect.poll(() => engine.networks.size).toBe(0)
  })

  it('that the engine cannot make, or that joins its containers, is a reason of the host', async () => {
    engine.answer = ({ path }) =>
      path === '/networks/create' ? { status: 500, body: { message: 'no br_netfilter' } } : null
    const refused = { cause: 'host', code: 'no_task_network' }
    expect(await containers().start(START)).toEqual({
      error: 'network of the container: no br_netfilter',
      refused,
    })
    engine.answer = ({ path, method }) =>
      method === 'GET' && path.startsWith('/networks/') ? { status: 200, body: { Options: {} } } : null
    expect(await containers().start(START)).toMatchObject({
      error: expect.stringContaining('does not isolate its containers') as string,
      refused,
    })
    expect(engine.callsOf('POST', /containers/)).toEqual([])
  })
})

describe('an engine', () => {
  it('that refuses a container is a reason of the task, which its image may cause, in one line', async () => {
    engine.answer = ({ path }) =>
      path.endsWith('/start') ? { status: 500, body: { message: 'no device:\n nvidia' } } : null
    expect(await containers().start(START)).toEqual({
      error: 'container: no device: nvidia',
      refused: { cause: 'task', code: 'container_not_started' },
    })
  })

  it('is found by its answer: podman says what it is', async () => {
    const { socketPath } = engine
    engine.answer = ({ path }) =>
      path === '/version'
        ? { status: 200, body: { Version: '5.2', Components: [{ Name: 'Podman Engine' }] } }
        : null
    expect(await findEngine('docker', { DOCKER_HOST: `unix://${socketPath}` })).toEqual({
      engine: { kind: 'podman', version: '5.2', socketPath, isRootless: false, canLimit: true },
    })
    engine.answer = ({ path }) =>
      path === '/info' ? { status: 200, body: { ...ENGINE_INFO, MemoryLimit: false } } : null
    expect(await findEngine('docker', { DOCKER_HOST: `unix://${socketPath}` })).toMatchObject({
      engine: { kind: 'docker', canLimit: false },
    })
    const none = await findEngine('podman', { CONTAINER_HOST: 'unix:///nowhere.sock' })
    expect(none).toMatchObject({ engine: null, why: expect.stringContaining('/nowhere.sock') as string })
  })

  it('keeps containers of other servers and of living attempts; all others are removed', async () => {
    for (const name of ['headroom-lives', 'headroom-ended']) engine.containers.set(name, {})
    containers().removeOthers((name) => name === 'headroom-lives')
    await expect.poll(() => [...engine.containers.keys()]).toEqual(['headroom-lives'])
    const labels = engine.callsOf('GET', /^\/containers\/json$/).map(({ query }) => query.get('filters'))
    expect(labels).toEqual([expect.stringMatching(/^\{"label":\["io.headroom.server=[0-9a-f]{16}"\]\}$/)])
    containers('docker', 'missing', '/other').removeOthers(() => true)
    await expect.poll(() => engine.callsOf('GET', /^\/containers\/json$/).length).toBe(2)
    const [, other] = engine.callsOf('GET', /^\/containers\/json$/)
    expect(other?.query.get('filters')).not.toBe(labels[0])
  })

  it('that cannot remove a container now is asked again', async () => {
    engine.answer = ({ method }) => (method === 'DELETE' ? { status: 500, body: { message: 'busy' } } : null)
    await containers().remove('headroom-x')
    expect(notes).toEqual(['a container cannot be removed yet: busy'])
  })
})
