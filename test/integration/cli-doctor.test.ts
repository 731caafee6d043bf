import { createServer } from 'node:net'
import { mkdirSync } from 'node:fs'
import { afterAll, describe, expect, it } from 'vitest'
import { clockCheck } from '../../cli/doctor/doctor.ts'
import { containerCheck, nodeVersionCheck, nvidiaCheck, swapArenaCheck } from '../../cli/doctor/host.ts'
import { FakeEngine } from '../support/fake-engine.ts'
import { askedApi, deadAddress } from '../support/asked.ts'
import { headroom, temporaryFolder, write } from '../support/headroom-command.ts'

const folder = temporaryFolder()

interface Found {
  readonly name: string
  readonly verdict: string
  readonly detail: string
  readonly todo: string | null
}

async function doctor(env: Readonly<Record<string, string>>) {
  const { code, stdout, stderr } = await headroom(['doctor', '-o', 'json'], {
    env: { CONTROLLER_DATA_DIR: `${folder}/data`, ...env },
  })
  expect(stderr).toBe('')
  return { code, checks: new Map((JSON.parse(stdout) as Found[]).map((check) => [check.name, check])) }
}

/** A broker that sends only its first line. */
async function broker(info: string): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.write(info)
  })
  afterAll(() => server.close())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return `127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
}

describe('headroom doctor', { timeout: 300_000 }, () => {
  it('accepts a controller that is ready, and exits with 0', async () => {
    const api = await askedApi()
    api.world.now = Date.now()
    const { code, checks } = await doctor({ VENDOR_CONTROLLER_URL: api.url })
    // Other tests may run tasks as root on this host meanwhile.
    const failed = [...checks.values()].filter(({ verdict }) => verdict === 'fail')
    expect(failed.filter(({ name }) => name !== 'task users')).toEqual([])
    expect(code).toBe(failed.length === 0 ? 0 : 1)
    expect(checks.get('controller')).toMatchObject({
      verdict: 'ok',
      detail: expect.stringContaining(api.url),
    })
    expect(checks.get('ready')).toMatchObject({ verdict: 'ok' })
    expect(checks.get('version')).toMatchObject({
      verdict: 'warn',
      detail: expect.stringContaining('0.0.0-test'),
    })
    expect(checks.get('Node.js')).toMatchObject({ verdict: 'ok' })
    expect(checks.get('data')).toMatchObject({ verdict: 'ok', detail: `${folder}/data can be created` })
    expect(checks.get('broker')).toMatchObject({ verdict: 'ok', detail: expect.stringContaining('not set') })
  })

  it('names each failure and its remedy', async () => {
    const api = await askedApi({
      readiness: () => [{ name: 'store', ok: false, detail: 'the store has failed' }],
    })
    const { code, checks } = await doctor({
      VENDOR_CONTROLLER_URL: api.url,
      CONTROLLER_NATS_URL: (await deadAddress()).replace('http', 'nats'),
      CONTROLLER_DATA_DIR: write(folder, 'file', ''),
      PATH: folder,
    })
    expect(code).toBe(1)
    expect(checks.get('ready: store')).toMatchObject({ verdict: 'fail', detail: 'the store has failed' })
    expect(checks.get('broker')).toMatchObject({
      verdict: 'fail',
      detail: expect.stringContaining('connection refused'),
    })
    expect(checks.get('data')).toMatchObject({ verdict: 'warn', detail: `${folder}/file is not a folder` })
    expect(checks.get('guard')).toMatchObject({ verdict: 'warn', detail: 'no C compiler found' })
    for (const { verdict, todo } of checks.values()) expect(todo === null).toBe(verdict === 'ok')
  })

  it('reports one failed line when no process listens at the address', async () => {
    const { code, checks } = await doctor({ VENDOR_CONTROLLER_URL: await deadAddress() })
    expect(code).toBe(1)
    expect(checks.get('controller')).toMatchObject({
      verdict: 'fail',
      todo: expect.stringContaining('headroom serve'),
    })
  })

  it.each([
    {
      says: 'INFO {"version":"2.10.1","auth_required":true}\r\n',
      scheme: 'nats',
      verdict: 'ok',
      detail: /2\.10\.1, with authentication/,
    },
    {
      says: 'INFO {"version":"2.10.1"}\r\n',
      scheme: 'nats',
      verdict: 'ok',
      detail: /runs nats-server 2.10.1, without authentication/,
    },
    {
      says: 'INFO {"version":"2.10.1","tls_required":true}\r\n',
      scheme: 'nats',
      verdict: 'warn',
      detail: /requires TLS/,
    },
    {
      says: 'INFO {"version":"2.10.1"}\r\n',
      scheme: 'tls',
      verdict: 'fail',
      detail: /runs nats-server 2.10.1 without TLS/,
    },
    { says: 'SSH-2.0-OpenSSH\r\n', scheme: 'nats', verdict: 'fail', detail: /not a NATS broker/ },
    { says: 'INFO nonsense\r\n', scheme: 'nats', verdict: 'fail', detail: /not a NATS broker/ },
  ])('reports a broker that sends $says over $scheme', async ({ says, scheme, verdict, detail }) => {
    const { checks } = await doctor({
      VENDOR_CONTROLLER_URL: await deadAddress(),
      CONTROLLER_NATS_URL: `${scheme}://${await broker(says)}`,
    })
    expect(checks.get('broker')).toMatchObject({ verdict, detail: expect.stringMatching(detail) })
  })

  it('reports an invalid broker address without its password', async () => {
    const { checks } = await doctor({
      VENDOR_CONTROLLER_URL: await deadAddress(),
      CONTROLLER_NATS_URL: 'http://user:secret@x',
    })
    expect(checks.get('broker')).toMatchObject({ verdict: 'fail' })
    expect(JSON.stringify([...checks.values()])).not.toContain('secret')
  })
})

it('names the container engine that answers, and what is missing without one', async () => {
  const engine = await new FakeEngine().start()
  const none = 'unix:///nonexistent/engine.sock'
  const check = async (env: NodeJS.ProcessEnv) => (await containerCheck(env))[0]
  expect(await check({ DOCKER_HOST: `unix://${engine.socketPath}`, CONTAINER_HOST: none })).toMatchObject({
    verdict: 'ok',
    detail: `docker 28.0.1 at ${engine.socketPath}`,
  })
  await engine.end()
  expect(await check({ DOCKER_HOST: none, CONTAINER_HOST: none })).toMatchObject({
    verdict: 'warn',
    todo: expect.stringContaining('Docker, podman or apptainer') as string,
  })
})

it('judges Node, the driver and the clock by their actual state', async () => {
  const verdicts = async (versions: readonly string[]) =>
    (await Promise.all(versions.map(nodeVersionCheck))).flat().map(({ verdict }) => verdict)
  expect(await verdicts(['20.19.0', '22.17.9', '22.18.0', '24.0.0'])).toEqual(['fail', 'fail', 'ok', 'ok'])
  mkdirSync(`${folder}/lib`)
  expect((await nvidiaCheck([`${folder}/none`, `${folder}/lib`]))[0]?.verdict).toBe('warn')
  write(`${folder}/lib`, 'libnvidia-ml.so.1', '')
  expect((await nvidiaCheck([`${folder}/none`, `${folder}/lib`]))[0]?.verdict).toBe('ok')
  expect(
    [clockCheck(5_000, 0, 100), clockCheck(5_101, 0, 100), clockCheck(0, 5_001, 6_000)].map(
      ({ verdict }) => verdict,
    ),
  ).toEqual(['ok', 'warn', 'warn'])
})

it('checks the requirements of swaps on a host with the driver', async () => {
  mkdirSync(`${folder}/driver`, { recursive: true })
  write(`${folder}/driver`, 'libnvidia-ml.so.1', '')
  const found = async (hugePages: string, scope: string): Promise<readonly string[]> => {
    const kernel = {
      hugePages: write(folder, 'enabled', hugePages),
      ptraceScope: write(folder, 'scope', scope),
    }
    return (await nvidiaCheck([`${folder}/driver`], kernel)).map(({ name, verdict }) => `${name} ${verdict}`)
  }
  expect(await found('[always] madvise never\n', '1\n')).toEqual(['NVIDIA ok', 'huge pages ok'])
  expect(await found('always [madvise] never\n', '0\n')).toEqual(['NVIDIA ok', 'huge pages warn'])
  expect(await found('', '3\n')).toEqual(['NVIDIA ok', 'ptrace fail'])
})

it('says whether the driver is new enough for a swap arena', async () => {
  const found = async (size: string, line: string): Promise<readonly string[]> => {
    const file = write(
      folder,
      'version',
      `NVRM version: NVIDIA UNIX ${line}  Fri Oct  2\nGCC version: 12.2.0\n`,
    )
    const checks = await swapArenaCheck({ NODE_SWAP_ARENA: size }, file)
    return checks.map(({ verdict, detail }) => `${verdict} ${detail}`)
  }
  expect(await found('', 'x86_64 Kernel Module  580.159.04')).toEqual([])
  expect(await found('0', 'x86_64 Kernel Module  580.159.04')).toEqual([])
  expect(await found('64Gi', 'x86_64 Kernel Module  580.159.04')).toEqual([
    'warn not used: driver 580.159.04',
  ])
  expect(await found('64Gi', 'Open Kernel Module for x86_64  615.71.09')).toEqual(['ok 65536 MiB'])
  expect(await found('64Gi', 'of an unknown form')).toEqual([
    'warn not used: the NVIDIA driver is not loaded',
  ])
})
