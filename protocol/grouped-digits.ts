/** `1,234,567`: a whole number for people, in sentences and tables. */
export function grouped(number: number): string {
  return String(number).replaceAll(/\B(?=(\d{3})+$)/g, ',')
}
