/** What apptainer is told, and the images that it makes, with a stand-in for its command. */
import { chmodSync, existsSync, readdirSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  execArguments,
  execEnvironment,
  type Apptainer,
} from '../../gpu-server/container/apptainer-command.ts'
import { ApptainerImages } from '../../gpu-server/container/apptainer-images.ts'
import { findEngine } from '../../gpu-server/container/find-engine.ts'
import type { ContainerStart } from '../../gpu-server/guard/containers.ts'
import { ApptainerHost, SOURCE } from '../support/apptainer-host.ts'
import { newGuardFolder, until } from '../support/guard-world.ts'

const IMAGE = 'team/train:1'
const DIGEST = `sha256:${'a1'.repeat(32)}`
const APPTAINER: Apptainer = {
  kind: 'apptainer',
  version: '1.4.0',
  program: '/usr/bin/apptainer',
  isRoot: true,
  seccompProfile: '/etc/apptainer/seccomp-profiles/default.json',
}
const START: ContainerStart = {
  name: 'headroom-0123456789ab',
  taskId: 'task 1',
  attempt: 2,
  epoch: 7,
  imageId: '/state/apptainer/images/a.sif',
  program: '/usr/lib/headroom/headroom-guard',
  socket: '/state/guards/task.2/init',
  workFolder: '/state/work/task.2',
  user: { uid: 200_003, gid: 200_003 },
  groups: [200_004],
  mounts: [],
  devices: ['GPU-11111111-2222-3333-4444-555555555555', 'GPU-66666666-7777-8888-9999-000000000000'],
}

const argumentsOf = (start: Partial<ContainerStart> = {}, more: Partial<Apptainer> = {}) =>
  execArguments({ ...APPTAINER, ...more }, { ...START, ...start })
const valuesOf = (name: string, given: readonly string[]) =>
  given.flatMap((each, i) => (each === name ? [given[i + 1]] : []))
const signal = () => new AbortController().signal

describe('a container of apptainer', () => {
  it('runs the guard as its first process, and nothing else', () => {
    const given = argumentsOf()
    expect(given.slice(0, 2)).toEqual(['--silent', 'exec'])
    expect(given.slice(-2)).toEqual(['/state/apptainer/images/a.sif', '/headroom/guard'])
    expect(given).toContain('--no-init')
    expect(given).toContain('--pid')
  })

  it('gets exactly the GPUs of the placement, whatever the image wants', () => {
    const given = argumentsOf()
    expect(given).toContain('--nvccli')
    expect(given).toContain('--containall')
    expect(given).not.toContain('--nv')
    const devices = START.devices.join(',')
    expect(execEnvironment(START)).toEqual({
      NVIDIA_VISIBLE_DEVICES: devices,
      NVIDIA_DRIVER_CAPABILITIES: 'compute,utility',
      APPTAINERENV_NVIDIA_VISIBLE_DEVICES: devices,
    })
  })

  it('on declared GPUs gets no device, even where the host gives GPUs to all containers', () => {
    const given = argumentsOf({ devices: [] })
    expect(given).toContain('--no-nv')
    expect(given).toContain('--no-rocm')
    expect(given.filter((each) => /^--nv/.test(each))).toEqual([])
    expect(execEnvironment({ ...START, devices: [] })).toMatchObject({ NVIDIA_VISIBLE_DEVICES: 'void' })
  })

  it('has the user of the attempt, no privilege, no network, and the default seccomp profile', () => {
    const given = argumentsOf()
    expect(valuesOf('--security', given)).toEqual([
      'uid:200003',
      'gid:200003:200004',
      'seccomp:/etc/apptainer/seccomp-profiles/default.json',
    ])
    expect(valuesOf('--network', given)).toEqual(['none'])
    expect(given).toEqual(expect.arrayContaining(['--no-privs', '--net', '--ipc', '--uts', '--no-home']))
    expect(given.join(' ')).not.toMatch(/--(add-caps|keep-privs|allow-setuid|fakeroot|writable )/)
  })

  it('of a server that is not root runs as that server, without limits that it cannot set', () => {
    const limits = { memoryMib: 512, cpus: 2, pids: 100 }
    const given = argumentsOf({ limits }, { isRoot: false, seccompProfile: null })
    expect(valuesOf('--security', given)).toEqual([])
    expect(given.join(' ')).not.toMatch(/--(memory|cpus|pids-limit)/)
    expect(given).toContain('--no-privs')
  })

  it('has the limits of its task, and 4,096 processes without one', () => {
    expect(valuesOf('--pids-limit', argumentsOf())).toEqual(['4096'])
    expect(argumentsOf()).not.toContain('--memory')
    const given = argumentsOf({ limits: { memoryMib: 512, cpus: 2, pids: 100 } })
    expect(valuesOf('--pids-limit', given)).toEqual(['100'])
    expect(valuesOf('--memory', given)).toEqual(['536870912'])
    expect(valuesOf('--memory-swap', given)).toEqual(['536870912'])
    expect(valuesOf('--cpus', given)).toEqual(['2'])
  })

  it('mounts the guard, its socket, its work folder and the data folders it asked for', () => {
    const mounts = [
      { name: 'datasets', source: '/srv/a,b "c"', isReadOnly: true },
      { name: 'scratch', source: '/srv/scratch', isReadOnly: false },
    ]
    expect(valuesOf('--mount', argumentsOf({ mounts }))).toEqual([
      'type=bind,source=/usr/lib/headroom/headroom-guard,destination=/headroom/guard,ro',
      'type=bind,source=/state/guards/task.2/init,destination=/headroom/init,ro',
      'type=bind,source=/state/work/task.2,destination=/headroom/work',
      'type=bind,"source=/srv/a,b ""c""",destination=/mnt/datasets,ro',
      'type=bind,source=/srv/scratch,destination=/mnt/scratch',
    ])
  })
})

describe('an image of apptainer', () => {
  it('is pulled once for tasks that need it at the same time, and is here afterwards', async () => {
    const host = new ApptainerHost()
    host.answer({ pullMs: 300 })
    const containers = await host.containers(newGuardFolder())
    expect(await containers.imagesHere([IMAGE])).toEqual([])
    const options = { signal: signal() }
    const [one, two] = await Promise.all([
      containers.prepare(IMAGE, options),
      containers.prepare(IMAGE, options),
    ])
    expect(one).toMatchObject({ error: null, workingDirectory: '/', digest: null })
    expect(two).toEqual(one)
    expect(host.calls('pull').map((call) => call.arguments.at(-1))).toEqual([SOURCE])
    expect(await containers.imagesHere([IMAGE, 'team/other:1'])).toEqual([IMAGE])
  })

  it('that is named by its digest is asked for without its tag, and has that digest', async () => {
    const host = new ApptainerHost()
    host.answer({ registry: { [`docker://docker.io/library/tiny@${DIGEST}`]: 'here' } })
    const containers = await host.containers(newGuardFolder())
    const found = await containers.prepare(`tiny:latest@${DIGEST}`, { signal: signal() })
    expect(found).toMatchObject({ error: null, digest: DIGEST })
  })

  it.each([
    ['reading manifest 1 in docker.io/team/train: manifest unknown', 'task', 'image_not_found'],
    ['requested access to the resource is denied', 'task', 'image_not_found'],
    ['dial tcp: lookup docker.io: no such host', 'host', 'registry_unreachable'],
    ['write /tmp/x: no space left on device', 'task', 'image_not_available'],
  ])('whose pull fails with "%s" is a reason of the %s', async (words, cause, code) => {
    const host = new ApptainerHost()
    host.answer({ registry: { [SOURCE]: words } })
    const folder = newGuardFolder()
    const containers = await host.containers(folder)
    const refused = await containers.prepare(IMAGE, { signal: signal() })
    expect(refused).toMatchObject({ refused: { cause, code } })
    expect(refused.error).toContain(words)
    expect(readdirSync(join(folder, 'apptainer/images'))).toEqual([])
    expect(readdirSync(join(folder, 'apptainer/scratch'))).toEqual([])
  })

  it('from a registry that does not answer in time fails for a reason of the host', async () => {
    const host = new ApptainerHost()
    host.answer({ pullMs: 60_000 })
    const images = new ApptainerImages({ program: host.program, folder: newGuardFolder(), pullMs: 500 })
    await images.open()
    await expect(images.pull(IMAGE, null, signal(), false)).rejects.toThrow('connection timed out')
  })

  it('is not pulled with the policy never, and before each attempt with the policy always', async () => {
    const host = new ApptainerHost()
    const never = await host.containers(newGuardFolder(), { pull: 'never' })
    const refused = await never.prepare(IMAGE, { signal: signal() })
    expect(refused).toMatchObject({ refused: { cause: 'task', code: 'image_not_available' } })
    expect(host.calls('pull')).toEqual([])
    const always = await host.containers(newGuardFolder(), { pull: 'always' })
    await always.prepare(IMAGE, { signal: signal() })
    await always.prepare(IMAGE, { signal: signal() })
    await always.prepare(IMAGE, { signal: signal(), isPrepared: true })
    expect(host.calls('pull')).toHaveLength(2)
    expect(await always.imagesHere([IMAGE])).toEqual([])
  })

  it('ends its pull with its task, and leaves nothing of it', async () => {
    const host = new ApptainerHost()
    host.answer({ pullMs: 60_000 })
    const folder = newGuardFolder()
    const containers = await host.containers(folder)
    const stop = new AbortController()
    const preparing = containers.prepare(IMAGE, { signal: stop.signal })
    await until('it is pulled', () => host.calls('pull').length === 1)
    stop.abort()
    expect((await preparing).error).not.toBe(null)
    expect(readdirSync(join(folder, 'apptainer/scratch'))).toEqual([])
  })

  it('is pulled with the login of its registry, which no argument and no container sees', async () => {
    const host = new ApptainerHost()
    const folder = newGuardFolder()
    const credentials = join(folder, 'logins.json')
    const auth = Buffer.from('reader:very secret').toString('base64')
    writeFileSync(credentials, JSON.stringify({ auths: { 'docker.io': { auth } } }))
    chmodSync(credentials, 0o600)
    const containers = await host.containers(folder, { credentials })
    const prepared = await containers.prepare(IMAGE, { signal: signal() })
    const [pull] = host.calls('pull')
    expect(pull?.env).toMatchObject({
      APPTAINER_DOCKER_USERNAME: 'reader',
      APPTAINER_DOCKER_PASSWORD: 'very secret',
    })
    expect(JSON.stringify(pull?.arguments)).not.toContain('secret')
    host.answer({ exec: 'refused' })
    const imageId = prepared.error === null ? prepared.imageId : ''
    writeFileSync(join(folder, 'init'), '')
    await containers.start({ ...START, imageId, socket: join(folder, 'init'), workFolder: folder })
    expect(JSON.stringify(host.calls('exec'))).not.toContain('secret')
  })

  it('is removed when newer ones fill the space, the least recently used one first', async () => {
    const folder = newGuardFolder()
    const host = new ApptainerHost()
    const sources = ['a', 'b', 'c'].map((name) => `docker://docker.io/library/${name}:latest`)
    host.answer({ registry: Object.fromEntries(sources.map((each) => [each, 'here'])) })
    // Each stub image is as long as its source.
    const maxBytes = 2 * (sources[0]?.length ?? 0)
    const images = new ApptainerImages({ program: host.program, folder, maxBytes })
    await images.open()
    for (const [i, name] of ['a', 'b'].entries()) {
      await images.pull(name, null, signal(), false)
      const file = (await images.find(name)) ?? ''
      utimesSync(file, 1_000 + i, 1_000 + i)
    }
    await images.find('a')
    await images.pull('c', null, signal(), false)
    expect(['a', 'b', 'c'].map((name) => images.has(name))).toEqual([true, false, true])
  })
})

describe('the engine of a host', () => {
  const envOf = (host: ApptainerHost) => ({
    PATH: `relative:${host.folder}`,
    DOCKER_HOST: 'unix:///nowhere/docker.sock',
    CONTAINER_HOST: 'unix:///nowhere/podman.sock',
  })

  it('is apptainer if its command is in PATH and no engine answers, with its seccomp profile', async () => {
    const host = new ApptainerHost()
    expect(existsSync(host.program)).toBe(true)
    const seccompProfile = host.installProfile()
    const found = { kind: 'apptainer', version: '1.4.0', program: host.program, seccompProfile }
    expect(await findEngine('auto', envOf(host))).toMatchObject({ engine: found })
    expect(await findEngine('apptainer', envOf(host))).toMatchObject({ engine: found })
    expect(await findEngine('podman', envOf(host))).toMatchObject({ engine: null })
  })

  it('is not an apptainer that is too old, another program, or missing; the reason says so', async () => {
    const host = new ApptainerHost()
    const whyOf = async (version: string) => {
      host.answer({ version })
      const found = await findEngine('apptainer', envOf(host))
      return found.engine === null ? found.why : null
    }
    expect(await whyOf('apptainer version 1.0.3')).toMatch(
      /version 1\.0\.3 is too old: install 1\.1 or later/,
    )
    expect(await whyOf('singularity-ce version 4.1.0')).toMatch(/does not report its version/)
    const missing = await findEngine('apptainer', { PATH: '/nowhere' })
    expect(missing).toEqual({ engine: null, why: 'apptainer: not found in PATH' })
  })
})
