import type { Locator, Page } from 'playwright-core'

/** A user who counts inputs: a click, a key, and a field that is filled count one each. */
export class Hands {
  inputs = 0
  readonly page: Page

  constructor(page: Page) {
    this.page = page
  }

  async click(target: Locator): Promise<void> {
    this.inputs += 1
    await target.click()
  }

  async press(key: string): Promise<void> {
    this.inputs += 1
    await this.page.keyboard.press(key)
  }

  async fill(field: Locator, text: string): Promise<void> {
    this.inputs += 1
    await field.fill(text)
  }

  button(name: string): Locator {
    return this.page.getByRole('button', { name, exact: true })
  }

  /** Whether the element is inside the window, which was not scrolled. */
  async sees(element: Locator): Promise<boolean> {
    await element.waitFor()
    const box = await element.boundingBox()
    const { width, height } = this.page.viewportSize() ?? { width: 0, height: 0 }
    return box !== null && box.y >= 0 && box.y + box.height <= height && box.x >= 0 && box.x < width
  }
}
