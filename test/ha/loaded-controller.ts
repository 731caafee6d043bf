/** One controller under load, started again whenever it ends. */
import { controllerOn, newFolder, type ControllerOn } from '../durability/controller-on.ts'
import { freePort } from '../support/free-port.ts'
import { Load, Supervisor } from './load.ts'
import { spread } from './spread.ts'

export class LoadedController {
  readonly controller: ControllerOn
  readonly load: Load
  readonly #supervisor: Supervisor

  private constructor(controller: ControllerOn, load: Load, supervisor: Supervisor) {
    this.controller = controller
    this.load = load
    this.#supervisor = supervisor
  }

  static async start(storeUrl: string): Promise<LoadedController> {
    const port = await freePort()
    const root = `http://127.0.0.1:${port}`
    const controller = controllerOn(newFolder(), {
      CONTROLLER_STORE_URL: storeUrl,
      CONTROLLER_HTTP_PORT: String(port),
    })
    const loaded = new LoadedController(controller, new Load([root]), new Supervisor(controller, root))
    await loaded.#supervisor.begin()
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

  report(what: string, times: readonly number[]): void {
    console.log(
      `${times.length} times ${what}: first 201 after ${spread(times)}; ` +
        `${this.load.acknowledged} tasks acknowledged, none lost; ` +
        `${this.load.repeated} unknown answers repeated`,
    )
  }

  async end(): Promise<void> {
    await this.load.end()
    await this.#supervisor.end()
  }
}
