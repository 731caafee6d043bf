/** `make images`, with an engine that records what it is asked. */
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { temporaryFolder } from '../support/headroom-command.ts'

const SCRIPT = join(import.meta.dirname, '../../deploy/images/build.sh')
const folder = temporaryFolder()
const calls = join(folder, 'calls')
const checkout = join(folder, 'checkout')
const DIGEST = `sha256:${'ab'.repeat(32)}`
/** FAILS names the image whose build fails. */
const ENGINE = `#!/bin/sh
echo "$@" >> ${calls}
case "$1 $2" in
  "--version ") echo "\${0##*/} version 4.3.1" ;;
  "push --digestfile") echo ${DIGEST} > "$3" ;;
  "image inspect") case "$*" in
    *RepoDigests*) echo "other.example/x@sha256:00"; echo "\${5%:*}@${DIGEST}" ;;
    *) echo ${DIGEST} ;;
  esac ;;
  build*) case "$*" in *"$FAILS"*) [ -z "$FAILS" ] || exit 1 ;; esac ;;
esac
`

function git(...args: readonly string[]): string {
  const identity = ['-c', 'user.name=a', '-c', 'user.email=a@b', '-c', 'commit.gpgsign=false']
  return execFileSync('git', ['-C', checkout, ...identity, ...args], { encoding: 'utf8' }).trim()
}

function build(env: Readonly<Record<string, string>> = {}, ...args: readonly string[]) {
  writeFileSync(calls, '')
  const path = `${folder}:${process.env['PATH'] ?? ''}`
  const { status, stdout, stderr } = spawnSync(SCRIPT, args, {
    cwd: checkout,
    env: { PATH: path, FAILS: '', ...env },
    encoding: 'utf8',
  })
  return { status, stdout, stderr, calls: readFileSync(calls, 'utf8').trim().split('\n').filter(Boolean) }
}

describe('make images', () => {
  beforeEach(() => {
    execFileSync('rm', ['-rf', checkout])
    mkdirSync(checkout)
    for (const name of ['docker', 'podman']) {
      writeFileSync(join(folder, name), ENGINE)
      chmodSync(join(folder, name), 0o755)
    }
    writeFileSync(join(checkout, 'package.json'), '{ "version": "1.2.3" }')
    git('init', '--quiet')
    git('add', '.')
    git('commit', '--quiet', '-m', 'a')
  })

  it('tags both images with the version, labels them with the commit, and prints their ids', () => {
    const { status, stdout, calls } = build()
    expect([status, stdout]).toEqual([
      0,
      `headroom-controller:1.2.3 ${DIGEST}\nheadroom-gpu-server:1.2.3 ${DIGEST}\n`,
    ])
    const labels =
      '--label org.opencontainers.image.version=1.2.3 ' +
      `--label org.opencontainers.image.revision=${git('rev-parse', 'HEAD')}`
    expect(calls.slice(0, 2)).toEqual(
      ['controller', 'gpu-server'].map(
        (name) => `build --target ${name} --tag headroom-${name}:1.2.3 ${labels} .`,
      ),
    )
    expect(calls.some((call) => call.startsWith('push'))).toBe(false)
  })

  it('gives changes that are not committed a tag of their own', () => {
    writeFileSync(join(checkout, 'new'), '')
    const { stdout, calls } = build({ BUILD_OPTIONS: '--build-arg NODE_IMAGE=x' }, '2.0.0')
    expect(stdout).toContain('headroom-controller:2.0.0-dirty ')
    expect(calls[0]).toMatch(/revision=[0-9a-f]{40}-dirty --build-arg NODE_IMAGE=x \.$/)
  })

  it.each(['docker', 'podman'])('pushes to a registry with %s, and prints the digests there', (engine) => {
    const { status, stdout, calls } = build({
      PUSH: '1',
      REGISTRY: 'reg.example:5000/team',
      ENGINE: engine,
    })
    expect(status).toBe(0)
    expect(stdout.split('\n')).toEqual([
      `reg.example:5000/team/headroom-controller@${DIGEST}`,
      `reg.example:5000/team/headroom-gpu-server@${DIGEST}`,
      '',
    ])
    const pushed = calls.filter((call) => call.startsWith('push'))
    expect(pushed.map((call) => call.replace(/--digestfile \S+ /, ''))).toEqual([
      'push reg.example:5000/team/headroom-controller:1.2.3',
      'push reg.example:5000/team/headroom-gpu-server:1.2.3',
    ])
  })

  it('pushes nothing when one of them cannot be built, or the registry is not named', () => {
    const failed = build({ PUSH: '1', REGISTRY: 'reg.example', FAILS: 'target gpu-server' })
    expect([failed.status, failed.stdout]).toEqual([1, ''])
    expect(failed.calls.filter((call) => call.startsWith('push'))).toEqual([])
    expect(build({ PUSH: '1' })).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('needs REGISTRY') as string,
      calls: [],
    })
    expect(build({ ENGINE: 'none-such' })).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('none-such not found') as string,
    })
  })
})

describe('make list-images', () => {
  const list = (env: Readonly<Record<string, string>> = {}) => {
    const path = `${folder}:${process.env['PATH'] ?? ''}`
    const script = join(import.meta.dirname, '../../deploy/images/list.sh')
    return spawnSync(script, { env: { PATH: path, FAILS: '', ...env }, encoding: 'utf8' })
  }

  it('prints the digests that the engine has from the registries', () => {
    writeFileSync(join(folder, 'docker'), ENGINE)
    const { status, stdout } = list({ REGISTRY: 'registry.example/team' })
    const lines = stdout.trim().split('\n')
    expect(status).toBe(0)
    expect(lines[0]).toMatch(
      new RegExp(`^registry.example/team/headroom-controller:\\S+ \\S+/headroom-controller@${DIGEST}$`),
    )
    expect(lines[2]).toMatch(
      /^registry\.k8s\.io\/kube-scheduler:v1\.\d+\.\d+ registry\.k8s\.io\/kube-scheduler@sha256:/,
    )
    expect(lines).toHaveLength(3)
  })

  it('names what it has no digest of, with what to do, and fails', () => {
    writeFileSync(join(folder, 'docker'), '#!/bin/sh\nexit 1\n')
    const { status, stdout } = list()
    expect([status, stdout.match(/without a digest/g)?.length]).toEqual([1, 3])
    expect(stdout).toMatch(/docker pull registry\.k8s\.io\/kube-scheduler/)
  })
})
