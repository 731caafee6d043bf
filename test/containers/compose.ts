/** docker-compose with the shipped file and the override of the test, in the test's own engine. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import type { Engine } from './engine.ts'
import { differences, FORBIDDEN, overrideOf, type ComposeConfig } from './override.ts'

const ROOT = join(import.meta.dirname, '../..')
const SHIPPED = 'docker-compose.yml'
export const PROJECT = 'headroom'

export class Compose {
  readonly #engine: Engine
  readonly #folder: string
  readonly #files: readonly string[]
  /** As shipped, with variables expanded. */
  readonly shipped: ComposeConfig
  #override: string
  /** Instead of a developer's .env. */
  readonly #variables: string

  /** @param more shipped files that extend docker-compose.yml; variables as lines NAME=value */
  constructor(engine: Engine, folder: string, more: readonly string[] = [], variables = '') {
    this.#engine = engine
    this.#folder = folder
    this.#files = [SHIPPED, ...more].map((file) => join(ROOT, file))
    this.#variables = join(folder, 'variables.env')
    writeFileSync(this.#variables, variables)
    this.shipped = this.#config(this.#files)
    this.#override = this.#written('override', overrideOf(this.shipped))
  }

  run(...args: readonly string[]): string {
    return this.#run([...this.#files, this.#override], args)
  }

  /** Throws when the override changes more than the device, or when another change would not be noticed. */
  holdAgainstShipped(): void {
    assert.deepEqual(differences(this.shipped, this.#config([...this.#files, this.#override])), [])
    const files = FORBIDDEN.map(({ override }, index) => this.#written(`forbidden-${index}`, override))
    const found = differences(this.shipped, this.#config([...this.#files, this.#override, ...files]))
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
      this.#variables,
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
