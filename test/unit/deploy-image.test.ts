/**
 * The Dockerfile refers to existing files and keeps the promises of docs/security.md about the images. Only a
 * Docker daemon can check whether it builds.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join, matchesGlob } from 'node:path'
import { describe, expect, it } from 'vitest'
import { HELPER_PROGRAM } from '../../operator/admission/swap-probes.ts'
import { ENVIRONMENT } from '../../services/settings/env-table.ts'
import { whyNotUnderstood } from '../support/command-lines.ts'
import { stagesOf } from '../support/dockerfile.ts'
import type { Instruction, Stage } from '../support/dockerfile.ts'

const ROOT = join(import.meta.dirname, '../..')
const IMAGES = ['controller', 'gpu-server']
/** Variables that Node and the NVIDIA container runtime read. */
const STANDARD = ['NODE_ENV', 'NVIDIA_VISIBLE_DEVICES', 'NVIDIA_DRIVER_CAPABILITIES']

const stages = stagesOf(readFileSync(join(ROOT, 'Dockerfile'), 'utf8'))

describe('the Dockerfile', () => {
  it('has both images, on the Node version of the project', () => {
    expect([...stages.keys()]).toEqual(expect.arrayContaining(IMAGES))
    const { engines } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
      engines: { node: string }
    }
    expect(engines.node).toBe('>=22.18')
    for (const name of IMAGES) expect(rootOf(name)).toBe('node:24-slim')
  })

  it('copies files that exist, pass .dockerignore, or come from an earlier stage', () => {
    const made = new Set([
      ...['/src/dist', '/src/gpu-server/guard/build', '/app/node_modules', '/headroom-probe-helper'],
    ])
    for (const stage of stages.values()) {
      for (const { words } of of(stage, 'COPY')) {
        const from = words.find((word) => word.startsWith('--from='))?.slice('--from='.length)
        const sources = words.filter((word) => !word.startsWith('--')).slice(0, -1)
        for (const source of sources) {
          if (from !== undefined)
            expect([from, made.has(source)]).toEqual([
              expect.stringMatching([...stages.keys()].join('|')),
              true,
            ])
          else expect([source, existsSync(join(ROOT, source)), isSent(source)]).toEqual([source, true, true])
        }
      }
    }
  })

  it('sends the sources of the build, and no packages, data, keys or history', () => {
    for (const path of [
      'Makefile',
      'tsconfig.build.json',
      'cli/main.ts',
      'ui/index.html',
      'gpu-server/core/lease.ts',
    ])
      expect(isSent(path)).toBe(true)
    for (const path of [
      'node_modules',
      '.git',
      'data',
      'dist',
      'test',
      'deploy/keys',
      '.env',
      'gpu-server/guard/build/x',
    ])
      expect(isSent(path)).toBe(false)
  })

  it('installs from the lock file and runs no install script', () => {
    const installs = [...stages.values()]
      .flatMap((stage) => of(stage, 'RUN'))
      .filter(({ text }) => /\bnpm\b/.test(text))
    expect(installs).toHaveLength(2)
    // The page is built in another stage, and Node is in the image.
    const alone = /^npm ci --omit=dev .*--workspaces=false --ignore-scripts.*strip-packages.ts . --prune$/s
    for (const { text } of installs) expect(text).toMatch(alone)
    expect(of(stage('controller-packages'), 'RUN')[0]?.text).toContain('--omit=optional')
    // The compiler is an optional package: without optional packages the stage could not build.
    expect(of(stage('build'), 'RUN').map(({ text }) => text)).toContain('make install')
  })

  it.each([
    ['controller', '1000:1000'],
    // It runs each attempt of a task under a separate user.
    ['gpu-server', '0:0'],
  ])('%s runs as %s, without a shell, an existing command', (name, user) => {
    expect(last(name, 'USER')?.text).toBe(user)
    const entrypoint = JSON.parse(last(name, 'ENTRYPOINT')?.text ?? '') as string[]
    expect(entrypoint).toEqual(['node', '--', 'dist/cli/main.js'])
    expect(whyNotUnderstood(JSON.parse(last(name, 'CMD')?.text ?? '') as string[])).toBeNull()
    expect(
      chain(name)
        .flatMap((each) => of(each, 'VOLUME'))
        .map(({ text }) => text),
    ).toEqual(['/var/lib/headroom'])
  })

  it('puts the helper for probes, which is static, where the init container of a pod expects it', () => {
    const [build] = of(stage('probe-helper'), 'RUN')
    expect(build?.text).toMatch(new RegExp(`^CGO_ENABLED=0 go build .* -o ${HELPER_PROGRAM} \\.$`))
    expect(of(stage('gpu-server'), 'COPY').map(({ text }) => text)).toContain(
      `--from=probe-helper ${HELPER_PROGRAM} ${HELPER_PROGRAM}`,
    )
  })

  it('checks the health of the controller without a shell', () => {
    const text = last('controller', 'HEALTHCHECK')?.text ?? ''
    const command = JSON.parse(text.slice(text.indexOf('['))) as string[]
    expect(command.slice(0, 2)).toEqual(['node', '-e'])
    expect(command[2]).toContain('/livez')
    expect(() => new Function(command[2] as string)).not.toThrow()
  })

  it('sets only variables that are read', () => {
    const known = new Set<string>([...Object.values(ENVIRONMENT).map(({ name }) => name), ...STANDARD])
    const set = [...stages.values()]
      .flatMap((each) => of(each, 'ENV'))
      .flatMap(({ words }) => words.map((word) => word.split('=')[0] as string))
    expect(set.length).toBeGreaterThan(3)
    expect(set.filter((name) => !known.has(name))).toEqual([])
  })
})

function stage(name: string): Stage {
  const found = stages.get(name)
  if (found === undefined) throw new Error(`the Dockerfile has no stage ${name}`)
  return found
}

function of(each: Stage, keyword: string): readonly Instruction[] {
  return each.instructions.filter((instruction) => instruction.keyword === keyword)
}

/** Returns a stage and the stages it is based on, first base first. */
function chain(name: string): readonly Stage[] {
  const { from } = stage(name)
  return [...(stages.has(from) ? chain(from) : []), stage(name)]
}

function rootOf(name: string): string {
  return chain(name)[0]?.from ?? ''
}

function last(name: string, keyword: string): Instruction | undefined {
  return chain(name)
    .flatMap((each) => of(each, keyword))
    .at(-1)
}

/** As in Docker: the last line that matches a path, or a folder above it, decides. */
function isSent(path: string): boolean {
  if (path === '.') return true
  const parts = path.split('/')
  const above = parts.map((_, i) => parts.slice(0, i + 1).join('/'))
  let isIgnored = false
  for (const line of readFileSync(join(ROOT, '.dockerignore'), 'utf8').split('\n')) {
    if (line === '' || line.startsWith('#')) continue
    const pattern = line.replace(/^!/, '')
    // Unlike in a shell, a star matches names that begin with a dot.
    if (pattern === '*' || above.some((each) => matchesGlob(each, pattern))) isIgnored = !line.startsWith('!')
  }
  return !isIgnored
}
