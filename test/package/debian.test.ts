/**
 * The Debian packages, installed in a clean Debian (test/support/debian-root.ts).
 */
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { appendFileSync, cpSync, existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { copyDebian, ENTER, NAMESPACES, whyNoDebian } from '../support/debian-root.ts'
import { temporaryFolder } from '../support/headroom-command.ts'
import { freePort } from '../support/free-port.ts'
import { getJson } from '../support/served.ts'

const ROOT = join(import.meta.dirname, '../..')
const NAMES = ['headroom', 'headroom-controller', 'headroom-gpu-server', 'headroom-gateway']
const run = promisify(execFile)

const why = whyNoDebian(['nats-server', 'systemd-analyze'])
if (why !== null) process.stderr.write(`skipped: Debian packages: ${why}\n`)

describe.skipIf(why !== null)('the Debian packages', { timeout: 600_000 }, () => {
  const folder = temporaryFolder()
  const root = join(folder, 'root')
  const started: ChildProcess[] = []
  const inRoot = (...command: string[]) =>
    run('unshare', [...NAMESPACES, 'sh', '-c', ENTER, root, ...command], { env: environment() })
  const environment = (user = 'root'): Record<string, string> => ({
    PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
    CHROOT: `--userspec=${user}`,
  })
  /** The line of a unit, as its user, with the variables of its conffile and those given here. */
  const service = (name: string, user: string, env: Readonly<Record<string, string>>, ...more: string[]) => {
    const unit = readFileSync(join(root, `usr/lib/systemd/system/headroom-${name}.service`), 'utf8')
    const line = /^ExecStart=(.+)$/m.exec(unit)?.[1]?.split(' ') ?? []
    const text = readFileSync(join(root, `etc/headroom/${name}.env`), 'utf8')
    const own = text.split('\n').flatMap((each) => (/^[A-Z]/.test(each) ? [each.split(/=(.*)/s)] : []))
    const variables = { ...environment(user), ...Object.fromEntries(own), ...env }
    const command = ['sh', '-c', ENTER, root, ...line, ...more]
    started.push(spawn('unshare', [...NAMESPACES, ...command], { env: variables, stdio: 'inherit' }))
  }
  const build = async (version: string): Promise<string> => {
    const out = join(folder, version)
    await run('deploy/debian/build.sh', [out, version], {
      cwd: ROOT,
      env: { ...process.env, HEADROOM_TARBALL: join(folder, 'headroom.tgz') },
    })
    cpSync(out, join(root, 'tmp', version), { recursive: true })
    return `/tmp/${version}`
  }
  const install = (packages: string) => inRoot('sh', '-c', `dpkg --force-confdef -i ${packages}/*.deb`)

  beforeAll(async () => {
    await copyDebian(root)
    await run('npm', ['pack', '--silent', '--pack-destination', folder], { cwd: ROOT })
    const [tarball = ''] = readdirSync(folder).filter((name) => name.endsWith('.tgz'))
    cpSync(join(folder, tarball), join(folder, 'headroom.tgz'))
    await install(await build('0.1.0'))
  }, 1_800_000)
  afterAll(() => started.forEach((child) => child.kill('SIGKILL')))

  it('install in a clean Debian, with a command, a user and conffiles', async () => {
    for (const command of ['headroom', 'kubectl-headroom'])
      expect((await inRoot(command, '--version')).stdout).toBe('0.1.0\n')
    expect((await inRoot('getent', 'passwd', 'headroom')).stdout).toContain('/usr/sbin/nologin')
    const { stdout } = await inRoot('dpkg-query', '-W', '-f', '${Conffiles}\n', ...NAMES)
    expect(stdout).toContain('/etc/headroom/controller.env')
    expect(stdout).toContain('/etc/headroom/gpu-server.env')
    expect(stdout).toContain('/etc/headroom/gateway.env')
  })

  it('have units that systemd accepts', async () => {
    for (const name of [
      'headroom-controller.service',
      'headroom-gpu-server.service',
      'headroom-gateway.service',
    ]) {
      const unit = readFileSync(join(root, 'usr/lib/systemd/system', name), 'utf8')
      // The command is installed in the root only.
      writeFileSync(join(folder, name), unit.replace('=/usr/bin/headroom', `=${root}/usr/bin/headroom`))
      await run('systemd-analyze', ['verify', '--man=no', join(folder, name)])
    }
  })

  it('run a task on a declared GPU, each service with the command and user of its unit', async () => {
    const [nats, http] = [await freePort(), await freePort()]
    started.push(spawn('nats-server', ['-a', '127.0.0.1', '-p', String(nats)], { stdio: 'ignore' }))
    const url = `http://127.0.0.1:${http}`
    for (const name of ['controller', 'gpu-server'])
      appendFileSync(join(root, `etc/headroom/${name}.env`), `CONTROLLER_NATS_URL=nats://127.0.0.1:${nats}\n`)
    await inRoot('install', '-d', '-o', 'headroom', '-m', '0700', '/var/lib/headroom')
    service('controller', 'headroom', {
      CONTROLLER_HTTP_PORT: String(http),
      CONTROLLER_DATA_DIR: '/var/lib/headroom',
      LOG_LEVEL: 'error',
    })
    await expect.poll(() => getJson(`${url}/readyz`).catch(() => null)).toMatchObject({ status: 'ready' })
    const inventory = 'gpus: [{ model: declared, vram_mib: 8192, swap: pinned-gen4 }]\n'
    writeFileSync(join(root, 'etc/headroom/inventory.yaml'), inventory)
    const declared = ['--device', 'process', '--inventory', '/etc/headroom/inventory.yaml']
    const env = { NODE_NAME: 'gpu-1', NODE_STATE_DIR: '/var/lib/headroom-gpu-server', LOG_LEVEL: 'error' }
    service('gpu-server', 'root', env, ...declared)
    const task = await inRoot(
      'headroom',
      'run',
      '--server',
      url,
      '--vram',
      '1Gi',
      '--',
      'sh',
      '-c',
      'id -u; exit 0',
    )
    expect(Number(task.stdout)).toBeGreaterThanOrEqual(200_000)
  })

  it('keep the configuration in an upgrade and in a downgrade', async () => {
    const file = join(root, 'etc/headroom/controller.env')
    const text = readFileSync(file, 'utf8')
    expect(text).toContain('CONTROLLER_NATS_URL=nats')
    for (const version of ['0.1.1', '0.1.0']) {
      await install(version === '0.1.0' ? '/tmp/0.1.0' : await build(version))
      expect((await inRoot('dpkg-query', '-W', '-f', '${Version}', 'headroom-controller')).stdout).toBe(
        version,
      )
      expect(readFileSync(file, 'utf8')).toBe(text)
    }
  })

  it('leave data and keys when they are purged', async () => {
    writeFileSync(join(root, 'etc/headroom/controller.nk'), 'seed')
    started.splice(0).forEach((child) => child.kill('SIGKILL'))
    await inRoot('dpkg', '--purge', ...NAMES.toReversed())
    expect(existsSync(join(root, 'usr/bin/headroom'))).toBe(false)
    expect(existsSync(join(root, 'etc/headroom/controller.env'))).toBe(false)
    expect(existsSync(join(root, 'etc/headroom/controller.nk'))).toBe(true)
    expect(existsSync(join(root, 'var/lib/headroom/headroom.db'))).toBe(true)
  })
})
