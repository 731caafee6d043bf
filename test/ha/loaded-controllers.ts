/** Controllers on one store under load, each started again whenever it ends. */
import { join } from 'node:path'
import { newestMark } from '../../controller/adapters/postgres/standby-mark.ts'
import { controllerOn, newFolder, type ControllerOn } from '../durability/controller-on.ts'
import { freePort } from '../support/free-port.ts'
import { Load, Supervisor } from './load.ts'
import { spread } from './spread.ts'

interface Running {
  readonly name: string
  readonly root: string
  readonly controller: ControllerOn
  /** Of the marks of its host. */
  readonly markBase: string
  readonly supervisor: Supervisor
}

export class LoadedControllers {
  readonly running: readonly Running[]
  readonly load: Load

  private constructor(running: readonly Running[]) {
    this.running = running
    this.load = new Load(running.map(({ root }) => root))
  }

  static async start(storeUrl: string, ...names: readonly string[]): Promise<LoadedControllers> {
    const keyFile = join(newFolder(), 'secrets.key')
    const loaded = new LoadedControllers(
      await Promise.all(names.map((name) => controllerNamed(name, storeUrl, keyFile))),
    )
    for (const { supervisor } of loaded.running) await supervisor.begin()
    loaded.load.begin()
    await loaded.load.nextAcknowledgement()
    return loaded
  }

  /**
   * Nothing acknowledged is lost.
   * @param fault resolves when the database can answer again
   * @returns times until the first 201 after it, in ascending order
   */
  async repeated(count: number, fault: () => Promise<void>): Promise<readonly number[]> {
    const times: number[] = []
    for (let i = 0; i < count; i++) {
      await this.load.nextAcknowledgement()
      await fault()
      const from = performance.now()
      await this.load.nextAcknowledgement()
      times.push(performance.now() - from)
    }
    await this.load.check()
    return times.sort((a, b) => a - b)
  }

  /** Number of commits that every controller knows. */
  get known(): number {
    const marks = this.running.map(({ markBase }) => newestMark(markBase))
    return Math.min(...marks.map((found) => (found.is === 'there' ? found.slot.mark.commits : 0)))
  }

  report(what: string, times: readonly number[]): void {
    console.log(
      `${times.length} times ${what}: first 201 after ${spread(times)}; ` +
        `${this.load.acknowledged} tasks acknowledged, none lost; ` +
        `${this.load.repeated} unknown answers repeated`,
    )
  }

  async end(): Promise<void> {
    await this.load.end()
    for (const { supervisor } of this.running) await supervisor.end()
  }
}

async function controllerNamed(name: string, storeUrl: string, keyFile: string): Promise<Running> {
  const port = await freePort()
  const folder = newFolder()
  const controller = controllerOn(folder, {
    CONTROLLER_STORE_URL: storeUrl,
    CONTROLLER_HTTP_PORT: String(port),
    CONTROLLER_NAME: name,
    CONTROLLER_SECRETS_KEY_FILE: keyFile,
  })
  const root = `http://127.0.0.1:${port}`
  return {
    name,
    root,
    controller,
    markBase: join(folder, 'postgres'),
    supervisor: new Supervisor(controller, root),
  }
}
