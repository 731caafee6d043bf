/**
 * The npm package as a user gets it: packed from this checkout and installed with nothing but its file,
 * without a registry, a cache or a compiler.
 */
import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { temporaryFolder } from '../support/headroom-command.ts'
import { getJson, serve } from '../support/served.ts'

const ROOT = join(import.meta.dirname, '../..')
const MAX_INSTALLED_MB = 60
const BLOCK_BYTES = 512
const run = promisify(execFile)

describe('the npm package', { timeout: 600_000 }, () => {
  const folder = temporaryFolder()
  const prefix = join(folder, 'prefix')
  const installed = join(prefix, 'lib/node_modules/headroom')
  const main = join(installed, 'dist/cli/main.js')
  const headroom = (...args: string[]) => run(join(prefix, 'bin/headroom'), args, { cwd: folder })

  beforeAll(async () => {
    // A make process inside `make test-package` would inherit its flags.
    const { MAKEFLAGS: _MAKEFLAGS, MAKELEVEL: _MAKELEVEL, ...env } = process.env
    await run('npm', ['pack', '--silent', '--pack-destination', folder], { cwd: ROOT, env })
    const [tarball = ''] = readdirSync(folder).filter((name) => name.endsWith('.tgz'))
    mkdirSync(join(folder, 'cache'))
    const alone = [
      '--offline',
      '--cache',
      join(folder, 'cache'),
      '--ignore-scripts',
      '--no-audit',
      '--no-fund',
    ]
    await run('npm', ['install', '--global', '--prefix', prefix, ...alone, join(folder, tarball)], {
      cwd: folder,
    })
  }, 900_000)

  it('installs in less than 60 MB, without C sources and builds for other systems', () => {
    const files = readdirSync(prefix, { recursive: true, withFileTypes: true }).filter((file) =>
      file.isFile(),
    )
    const bytes = files.map((file) => statSync(join(file.parentPath, file.name)).blocks * BLOCK_BYTES)
    const megabytes = bytes.reduce((sum, each) => sum + each, 0) / 1_000_000
    process.stdout.write(`installed: ${files.length} files, ${megabytes.toFixed(1)} MB on disk\n`)
    expect(megabytes).toBeLessThan(MAX_INSTALLED_MB)
    expect(
      files
        .map(({ name }) => name)
        .filter((name) => /\.(cc|cpp|map)$|^(win32|linuxmusl).*\.node$/.test(name)),
    ).toEqual([])
    expect(
      readdirSync(join(installed, 'node_modules')).filter((name) => name.startsWith('node-linux')),
    ).toEqual([])
  })

  it('has a command that prints its version', async () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }
    expect((await headroom('--version')).stdout).toBe(`${version}\n`)
  })

  it('has the plugin of kubectl under its name', async () => {
    const { stdout } = await run(join(prefix, 'bin/kubectl-headroom'), ['--help'], { cwd: folder })
    expect(stdout).toContain('Usage: kubectl headroom')
  })

  it('serves the demonstration and its page', async () => {
    const served = await serve(join(folder, 'data'), { NODE_ENV: 'production' }, [main])
    const page = await fetch(`${served.url}/`)
    expect([page.status, page.headers.get('content-type')]).toEqual([
      200,
      expect.stringContaining('text/html'),
    ])
    expect(await getJson(`${served.url}/readyz`)).toMatchObject({ status: 'ready' })
    const status = await headroom('status', '--server', served.url)
    expect(status.stdout).toContain('16 of 16 GPUs')
    served.process.kill('SIGTERM')
    expect(await served.ended).toBe(0)
  })

  it('runs a scenario that it brings with it', async () => {
    const scenario = join(installed, 'scenarios/swap-fairness-basic.scenario.yaml')
    expect((await headroom('sim', 'check', scenario)).stdout).toMatch(/^ok\s+swap-fairness-basic$/m)
  })

  it('contains all types that the client needs', () => {
    const seen = new Set<string>()
    const follow = (file: string): void => {
      if (seen.has(file)) return
      seen.add(file)
      for (const [, path = ''] of readFileSync(file, 'utf8').matchAll(
        /(?:from|import)[ (]*['"](\.[^'"]+)['"]/g,
      ))
        follow(join(file, '..', path.replace(/\.[tj]s$/, '.d.ts')))
    }
    follow(join(installed, 'dist/clients/typescript/client.d.ts'))
    expect(seen.size).toBeGreaterThan(10)
  })
})
