/** The helper for probes, built from its sources. */
import { execFileSync, spawnSync } from 'node:child_process'
import { join } from 'node:path'

const SOURCES = join(import.meta.dirname, '../../../operator/probe-helper')
const PATH = `${process.env['PATH'] ?? ''}:/usr/local/go/bin`

export function hasGo(): boolean {
  return spawnSync('go', ['version'], { env: { ...process.env, PATH }, stdio: 'ignore' }).status === 0
}

/** @param target file of the program */
export function buildProbeHelper(target: string): void {
  const env = { ...process.env, PATH, CGO_ENABLED: '0', GOTOOLCHAIN: 'local', GOFLAGS: '-buildvcs=false' }
  execFileSync('go', ['vet', '.'], { cwd: SOURCES, env, stdio: 'pipe' })
  execFileSync('go', ['build', '-o', target, '.'], { cwd: SOURCES, env, stdio: 'pipe' })
}
