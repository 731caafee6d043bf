/** A process that may be stopped and continued: what is due meanwhile runs when it continues, in order. */
export class Pause {
  /** Null: it runs. */
  #late: (() => void)[] | null = null

  get isOn(): boolean {
    return this.#late !== null
  }

  begin(): void {
    this.#late ??= []
  }

  end(): void {
    const late = this.#late ?? []
    this.#late = null
    for (const act of late) this.run(act)
  }

  run(act: () => void): void {
    if (this.#late === null) act()
    else this.#late.push(act)
  }
}
