"use strict";
// The champion in the page itself: pictures that are dropped or drawn are prepared as in training, and
// answered by the network, in plain JavaScript. Nothing leaves the page.

const Champion = (() => {
  const PRECISION = 22; // bits behind the point in Pillow's arithmetic of resizing

  const numbers = (text) => {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    return new Float32Array(bytes.buffer);
  };

  function erf(x) {
    if (Math.abs(x) > 4.5) return Math.sign(x);
    let term = x;
    let sum = x;
    for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum) && n < 200; n++) {
      term *= (-x * x) / n;
      sum += term / (2 * n + 1);
    }
    return (2 / Math.sqrt(Math.PI)) * sum;
  }

  const activations = {
    relu: (v) => (v > 0 ? v : 0),
    leaky_relu: (v) => (v > 0 ? v : 0.01 * v),
    elu: (v) => (v > 0 ? v : Math.expm1(v)),
    gelu: (v) => 0.5 * v * (1 + erf(v * Math.SQRT1_2)),
    silu: (v) => v / (1 + Math.exp(-v)),
    tanh: Math.tanh,
    smooth: (v) => 0.5 * (Math.sqrt(v * v + 4) + v) - 1,
  };

  // Kernels of individual shape, each centred on its position; beyond the edges there are zeros.
  function conv(step, input, out) {
    const [channels, height, width] = step.below;
    let place = 0;
    let at = 0;
    step.kernels.forEach(([tall, wide], node) => {
      for (let row = 0; row < height; row += step.stride[0]) {
        const top = row - (tall >> 1);
        for (let column = 0; column < width; column += step.stride[1]) {
          const left = column - (wide >> 1);
          let sum = step.bias.length ? step.bias[node] : 0;
          for (let channel = 0; channel < channels; channel++) {
            for (let i = Math.max(0, -top); i < Math.min(tall, height - top); i++) {
              const from = (channel * height + top + i) * width + left;
              const weights = at + (channel * tall + i) * wide;
              for (let j = Math.max(0, -left); j < Math.min(wide, width - left); j++) {
                sum += step.weight[weights + j] * input[from + j];
              }
            }
          }
          out[place++] = sum;
        }
      }
      at += channels * tall * wide;
    });
  }

  function full(step, input, out) {
    for (let node = 0; node < out.length; node++) {
      let sum = step.bias.length ? step.bias[node] : 0;
      for (let i = 0; i < input.length; i++) sum += step.weight[node * input.length + i] * input[i];
      out[node] = sum;
    }
  }

  // The averages of windows that together cover the maps.
  function pool(step, input, out) {
    const [channels, height, width] = step.below;
    const [, rows, columns] = step.output;
    let place = 0;
    for (let channel = 0; channel < channels; channel++) {
      for (let row = 0; row < rows; row++) {
        for (let column = 0; column < columns; column++) {
          const [top, bottom] = [Math.floor((row * height) / rows), Math.ceil(((row + 1) * height) / rows)];
          const [left, right] = [Math.floor((column * width) / columns), Math.ceil(((column + 1) * width) / columns)];
          let sum = 0;
          for (let i = top; i < bottom; i++) {
            for (let j = left; j < right; j++) sum += input[(channel * height + i) * width + j];
          }
          out[place++] = (step.factor * sum) / ((bottom - top) * (right - left));
        }
      }
    }
  }

  function each(step, input, out) {
    const size = out.length / step.output[0];
    for (let i = 0; i < out.length; i++) {
      const channel = Math.floor(i / size);
      const scaled = step.weight.length ? input[i] * step.weight[channel] : input[i];
      out[i] = step.bias.length ? scaled + step.bias[channel] : scaled;
    }
  }

  const kinds = { conv, full, pool, each };

  class Model {
    constructor(plain) {
      Object.assign(this, plain);
      this.scale = numbers(plain.scale);
      this.shift = numbers(plain.shift);
      this.steps = plain.steps.map((step) => ({ ...step, weight: numbers(step.weight), bias: numbers(step.bias) }));
    }

    // The probability of each class, or label, or the numbers themselves, for raw values in the order (channel, row, column).
    answer(values) {
      const size = values.length / this.scale.length;
      const slots = [
        Float32Array.from(values, (value, i) => value * this.scale[Math.floor(i / size)] + this.shift[Math.floor(i / size)]),
      ];
      for (const step of this.steps) {
        const out = new Float32Array(step.output.reduce((product, side) => product * side, 1));
        kinds[step.kind](step, slots[step.source], out);
        if (step.add !== null) slots[step.add].forEach((value, i) => (out[i] += value));
        if (step.activation) out.forEach((value, i) => (out[i] = activations[step.activation](value)));
        slots.push(out);
      }
      if (this.task === "regression") return Array.from(slots.at(-1));
      const logits = Array.from(slots.at(-1), (value) => value / this.temperature);
      if (this.task === "multilabel") return logits.map((value) => 1 / (1 + Math.exp(-value)));
      const most = Math.max(...logits);
      const powers = logits.map((value) => Math.exp(value - most));
      const sum = powers.reduce((total, value) => total + value, 0);
      return powers.map((value) => value / sum);
    }
  }

  // One dimension of Pillow's bilinear filter: for each place of the result, where it begins, and its weights.
  function windows(before, after) {
    const scale = before / after;
    const reach = Math.max(1, scale);
    return Array.from({ length: after }, (_, place) => {
      const centre = (place + 0.5) * scale;
      const first = Math.max(0, Math.trunc(centre - reach + 0.5));
      const last = Math.min(before, Math.trunc(centre + reach + 0.5));
      const weights = [];
      for (let at = first; at < last; at++) weights.push(Math.max(0, 1 - Math.abs((at - centre + 0.5) / reach)));
      const sum = weights.reduce((total, weight) => total + weight, 0);
      return [first, weights.map((weight) => Math.trunc(0.5 + (weight / sum) * 2 ** PRECISION))];
    });
  }

  function resized(plane, height, width, rows, columns) {
    const half = 2 ** (PRECISION - 1);
    const byte = (sum) => Math.min(255, Math.floor(sum / 2 ** PRECISION));
    let [image, wide] = [plane, width];
    if (columns !== width) {
      const out = new Uint8Array(height * columns);
      windows(width, columns).forEach(([first, weights], column) => {
        for (let row = 0; row < height; row++) {
          let sum = half;
          weights.forEach((weight, i) => (sum += weight * image[row * width + first + i]));
          out[row * columns + column] = byte(sum);
        }
      });
      [image, wide] = [out, columns];
    }
    if (rows === height) return image;
    const out = new Uint8Array(rows * wide);
    windows(height, rows).forEach(([first, weights], row) => {
      for (let column = 0; column < wide; column++) {
        let sum = half;
        weights.forEach((weight, i) => (sum += weight * image[(first + i) * wide + column]));
        out[row * wide + column] = byte(sum);
      }
    });
    return out;
  }

  // Pixels as a canvas has them, as bytes [channels, height, width]: on white, resized, grey where it must be.
  function prepared(pixels, height, width, shape) {
    const [channels, rows, columns] = shape;
    const planes = [0, 1, 2].map((colour) => {
      const plane = new Uint8Array(height * width);
      for (let i = 0; i < plane.length; i++) {
        const alpha = pixels[4 * i + 3] / 255;
        plane[i] = Math.round(pixels[4 * i + colour] * alpha + 255 * (1 - alpha));
      }
      return resized(plane, height, width, rows, columns);
    });
    if (channels === 3) return planes;
    const [red, green, blue] = planes;
    return [red.map((value, i) => (value * 19595 + green[i] * 38470 + blue[i] * 7471 + 32768) >> 16)];
  }

  return { Model, prepared };
})();

async function tryIt() {
  const card = document.getElementById("try");
  if (!card) return;
  const model = new Champion.Model(JSON.parse(await unpacked("model")));
  const [pad, seen] = [card.querySelector(".pad"), card.querySelector(".seen")];
  const [chooser, list] = [card.querySelector("input[type=file]"), card.querySelector(".answers")];
  const pen = pad.getContext("2d", { willReadFrequently: true });
  const [paper, ink] = model.dark ? ["#000", "#fff"] : ["#fff", "#000"];
  const [, rows, columns] = model.shape;

  function clear() {
    pen.fillStyle = paper;
    pen.fillRect(0, 0, pad.width, pad.height);
    list.replaceChildren();
    card.querySelector(".hint").hidden = false;
    delete card.dataset.answer;
    seen.getContext("2d").clearRect(0, 0, columns, rows);
  }

  function show(planes) {
    const view = new ImageData(columns, rows);
    for (let i = 0; i < rows * columns; i++) {
      view.data.set([0, 1, 2].map((colour) => planes[colour % planes.length][i]), 4 * i);
      view.data[4 * i + 3] = 255;
    }
    seen.getContext("2d").putImageData(view, 0, 0);
  }

  function answer(image) {
    const planes = Champion.prepared(image.data, image.height, image.width, model.shape);
    const values = planes.flatMap((plane) => Array.from(plane, (value) => Math.fround(value * Math.fround(model.white / 255))));
    const odds = model.answer(values);
    const numbers = model.task === "regression";
    const ranked = odds.map((value, place) => [value, place]);
    if (!numbers) ranked.sort((one, other) => other[0] - one[0]);
    show(planes);
    list.classList.toggle("numbers", numbers);
    list.replaceChildren(
      ...ranked.slice(0, numbers ? 20 : model.task === "multilabel" ? 10 : 5).map(([value, place]) => {
        const [item, name, bar, share] = ["li", "span", "i", "b"].map((tag) => document.createElement(tag));
        name.textContent = model.classes[place];
        share.textContent = numbers ? `${Number(value.toPrecision(4))}` : `${(100 * value).toFixed(1)} %`;
        bar.style.setProperty("--share", `${100 * value}%`);
        if (model.task === "multilabel" && value < 0.5) item.className = "without";
        item.append(...(numbers ? [name, share] : [name, bar, share]));
        return item;
      }),
    );
    card.querySelector(".hint").hidden = true;
    card.dataset.answer = JSON.stringify(odds);
    live.textContent = spoken(odds, ranked);
  }

  // The answer as it is read out.
  function spoken(odds, ranked) {
    if (model.task === "regression") return odds.map((value, place) => `${model.classes[place]} ${Number(value.toPrecision(4))}`).join(", ");
    if (model.task === "classes") return `${model.classes[ranked[0][1]]}, ${(100 * ranked[0][0]).toFixed(1)} percent`;
    return ranked.filter(([value]) => value >= 0.5).map(([, place]) => model.classes[place]).join(", ") || "no label";
  }

  async function read(file) {
    delete card.dataset.answer;
    const trouble = card.querySelector(".trouble");
    trouble.hidden = true;
    try {
      const options = { imageOrientation: "from-image", premultiplyAlpha: "none", colorSpaceConversion: "none" };
      const picture = await createImageBitmap(file, options);
      const canvas = new OffscreenCanvas(picture.width, picture.height);
      const context = canvas.getContext("2d");
      context.drawImage(picture, 0, 0);
      const fit = Math.min(pad.width / picture.width, pad.height / picture.height);
      const [wide, tall] = [picture.width * fit, picture.height * fit];
      clear();
      pen.drawImage(picture, (pad.width - wide) / 2, (pad.height - tall) / 2, wide, tall);
      answer(context.getImageData(0, 0, picture.width, picture.height));
    } catch {
      trouble.hidden = false;
    }
  }

  function draw(event) {
    const box = pad.getBoundingClientRect();
    const at = [((event.clientX - box.left) / box.width) * pad.width, ((event.clientY - box.top) / box.height) * pad.height];
    pen.strokeStyle = ink;
    pen.lineCap = pen.lineJoin = "round";
    pen.lineWidth = pad.width / 11;
    pen.lineTo(...at);
    pen.stroke();
    pen.beginPath();
    pen.moveTo(...at);
  }

  pad.addEventListener("pointerdown", (event) => {
    if (pad.dataset.drawn !== "yes") clear();
    pad.dataset.drawn = "yes";
    pad.setPointerCapture(event.pointerId);
    pen.beginPath();
    draw(event);
  });
  pad.addEventListener("pointermove", (event) => {
    if (!event.buttons) return;
    draw(event);
    answer(pen.getImageData(0, 0, pad.width, pad.height));
  });
  pad.addEventListener("pointerup", () => answer(pen.getImageData(0, 0, pad.width, pad.height)));
  card.querySelector(".clear").addEventListener("click", () => {
    delete pad.dataset.drawn;
    clear();
  });
  chooser.addEventListener("change", () => {
    delete pad.dataset.drawn;
    if (chooser.files.length) read(chooser.files[0]);
  });
  for (const name of ["dragenter", "dragover"]) {
    card.addEventListener(name, (event) => {
      event.preventDefault();
      card.classList.add("over");
    });
  }
  card.addEventListener("dragleave", () => card.classList.remove("over"));
  card.addEventListener("drop", (event) => {
    event.preventDefault();
    card.classList.remove("over");
    delete pad.dataset.drawn;
    if (event.dataTransfer.files.length) read(event.dataTransfer.files[0]);
  });
  clear();
  card.dataset.ready = "";
}

tryIt().catch((error) => console.warn(error));
