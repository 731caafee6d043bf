/** docker-compose with the shipped file and the override of the test, in the test's own engine. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import type { Engine } from './engine.ts'
import { differences, FORBIDDEN, overrideOf, type ComposeConfig } from './override.ts'

const ROOT = join(import.meta.dirname, '../..')
const SHIPPED = join(ROOT, 'docker-compose.yml')
export const PROJECT = 'headroom'

export class Compose {
  readonly #engine: Engine
  readonly #folder: string
  /** As shipped, with variables expanded. */
  readonly shipped: ComposeConfig
  #override: string
  /** Instead of a developer's .env. */
  readonly #noVariables: string

  constructor(engine: Engine, folder: string) {
    this.#engine = engine
    this.#folder = folder
    this.#noVariables = join(folder, 'no.env')
    writeFileSync(this.#noVariables, '')
    this.shipped = this.#config([SHIPPED])
    this.#override = this.#written('override', overrideOf(this.shipped))
  }

  run(...args: readonly string[]): string {
    return this.#run([SHIPPED, this.#override], args)
  }

  /** Throws when the override changes more than the device, or when another change would not be noticed. */
  holdAgainstShipped(): void {
    assert.deepEqual(differences(this.shipped, this.#config([SHIPPED, this.#override])), [])
    const files = FORBIDDEN.map(({ override }, index) => this.#written(`forbidden-${index}`, override))
    const found = differences(this.shipped, this.#config([SHIPPED, this.#override, ...files]))
    for (const { path } of FORBIDDEN)
      assert.ok(
        found.some((each) => each.startsWith(path)),
        `not noticed: ${path}`,
      )
  }

  /** From now on; only for a negative control. */
  addOptions(...options: readonly string[]): void {
    this.#override = this.#written('negative-control', overrideOf(this.shipped, options))
  }

  #config(files: readonly string[]): ComposeConfig {
    return parse(this.#run(files, ['config'])) as ComposeConfig
  }

  /** Compose also reads JSON. */
  #written(name: string, config: ComposeConfig): string {
    const path = join(this.#folder, `${name}.yml`)
    writeFileSync(path, JSON.stringify(config))
    return path
  }

  #run(files: readonly string[], args: readonly string[]): string {
    const options = [
      '--project-directory',
      ROOT,
      '--env-file',
      this.#noVariables,
      '--profile',
      'gpu',
      '-p',
      PROJECT,
    ]
    return execFileSync('docker-compose', [...files.flatMap((file) => ['-f', file]), ...options, ...args], {
      cwd: ROOT,
      env: this.#engine.env,
      encoding: 'utf8',
      // A failure contains the output in its message.
      stdio: 'pipe',
    })
  }
}
