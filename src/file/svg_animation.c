/* SPDX-License-Identifier: MIT */
/* svg_animation.c - images that appear pixel by pixel, as an SVG file.
 *
 * A pixel that was drawn never changes. So the file holds the finished grid once, as a PNG, and
 * above each image a cover of two rectangles that shrinks: the rows that are still to come, and
 * the rest of the current row. The cover is defined once and used for every image; it moves by
 * SMIL, which runs in every browser and also where a page shows the file as an image. */
#include <inttypes.h>
#include <math.h>

#include "file/file_writer.h"
#include "file/png_file.h"

enum {
    SCALE = 3,          /* screen pixels for a pixel */
    SIDE_MOST = 100000, /* screen pixels */
    LINE = 22,          /* from one line of text to the next */
    BAR = 8,            /* a bar's height */
};
static const double draw_seconds = 8.0, stand_seconds = 3.0;

struct writing {
    struct tn_text out;
    tarn_error *err;
    tarn_image_size size;
    size_t count, across;
    tarn_animation how; /* with its defaults filled in */
};

/* ---- Text --------------------------------------------------------------- */

/* XML's special characters as entities; control characters, which XML 1.0 forbids, as spaces.
 */
static void put_escaped(struct writing *w, const char *text)
{
    for (; *text; text++) {
        if (*text == '<')
            tn_text_put(&w->out, "&lt;", 4);
        else if (*text == '&')
            tn_text_put(&w->out, "&amp;", 5);
        else
            tn_text_put(&w->out, (unsigned char)*text < ' ' ? " " : text, 1);
    }
}

/* ---- Time --------------------------------------------------------------- */

static size_t pixel_count(const struct writing *w)
{
    return w->size.height * w->size.width;
}

static size_t given_pixels(const struct writing *w)
{
    return tn_min(w->how.given / w->size.channels, pixel_count(w) - 1);
}

static uint64_t milliseconds(double seconds)
{
    return (uint64_t)llround(1e3 * seconds);
}

static uint64_t cycle(const struct writing *w)
{
    return milliseconds(w->how.seconds + stand_seconds);
}

/* The values of an attribute after `done` pixels. */
typedef size_t value_at(const struct writing *w, size_t done);

static size_t rows_top(const struct writing *w, size_t done)
{
    return tn_min(done / w->size.width + 1, w->size.height);
}

static size_t rows_height(const struct writing *w, size_t done)
{
    return w->size.height - rows_top(w, done);
}

static size_t row_top(const struct writing *w, size_t done)
{
    return tn_min(done / w->size.width, w->size.height - 1);
}

static size_t row_left(const struct writing *w, size_t done)
{
    return done < pixel_count(w) ? done % w->size.width : w->size.width;
}

static size_t row_width(const struct writing *w, size_t done)
{
    return w->size.width - row_left(w, done);
}

/* One value for every pixel drawn, then the last one while all stands: as many times as fill
 * its share of the cycle. */
static void animate(struct writing *w, const char *attribute, value_at *value)
{
    const size_t all = pixel_count(w), first = given_pixels(w);
    const double each = w->how.seconds / (double)(all - first);
    const size_t stand = (size_t)ceil(stand_seconds / each);

    tn_text_print(&w->out, "<animate attributeName=\"%s\" dur=\"%" PRIu64 "ms\" ", attribute,
                  cycle(w));
    tn_text_print(&w->out, "repeatCount=\"indefinite\" calcMode=\"discrete\" values=\"");
    for (size_t done = first; done < all; done++)
        tn_text_print(&w->out, "%zu;", value(w, done));
    for (size_t i = 0; i < stand; i++)
        tn_text_print(&w->out, "%zu%s", value(w, all), i + 1 < stand ? ";" : "");
    tn_text_print(&w->out, "\"/>\n");
}

/* ---- The images --------------------------------------------------------- */

static void define_cover(struct writing *w)
{
    const size_t scale = w->how.scale;

    tn_text_print(&w->out, "<defs><g id=\"cover\" fill=\"#808080\" transform=\"scale(%zu)\">\n",
                  scale);
    tn_text_print(&w->out, "<rect x=\"0\" width=\"%zu\" y=\"0\" height=\"0\">\n",
                  w->size.width);
    animate(w, "y", rows_top);
    animate(w, "height", rows_height);
    tn_text_print(&w->out, "</rect>\n<rect height=\"1\" x=\"0\" width=\"0\" y=\"0\">\n");
    animate(w, "y", row_top);
    animate(w, "x", row_left);
    animate(w, "width", row_width);
    tn_text_print(&w->out, "</rect>\n</g></defs>\n");
}

static size_t extent(size_t cells, size_t pixels)
{
    return cells * (pixels + TARN_PNG_GAP) - TARN_PNG_GAP;
}

static size_t grid_width(const struct writing *w)
{
    return w->how.scale * extent(w->across, w->size.width);
}

static size_t grid_height(const struct writing *w)
{
    return w->how.scale * extent(tn_blocks(w->count, w->across), w->size.height);
}

static void put_images(struct writing *w, const struct tn_text *png)
{
    const size_t right = w->how.scale * (w->size.width + TARN_PNG_GAP),
                 down = w->how.scale * (w->size.height + TARN_PNG_GAP);

    tn_text_print(&w->out,
                  "<image width=\"%zu\" height=\"%zu\" style=\"image-rendering:pixelated\" ",
                  grid_width(w), grid_height(w));
    tn_text_print(&w->out, "href=\"data:image/png;base64,");
    tn_text_base64(&w->out, png->data, png->used);
    tn_text_print(&w->out, "\"/>\n<g shape-rendering=\"crispEdges\">\n");
    for (size_t i = 0; i < w->count; i++)
        if (!w->how.still || !w->how.still[i])
            tn_text_print(&w->out, "<use href=\"#cover\" x=\"%zu\" y=\"%zu\"/>\n",
                          i % w->across * right, i / w->across * down);
    tn_text_print(&w->out, "</g>\n");
}

/* ---- The bars ----------------------------------------------------------- */

static double longest_bar(const tarn_animation *how)
{
    double longest = 0.0;

    for (size_t i = 0; i < how->bar_count; i++)
        longest = fmax(longest, fmax(how->bars[i].first, how->bars[i].last));
    return longest;
}

static size_t bar_width(const struct writing *w, double value)
{
    const double longest = longest_bar(&w->how);
    const double width = longest > 0.0 ? (double)grid_width(w) * value / longest : 0.0;

    return width < 2.0 ? 2 : (size_t)width; /* to be seen at all */
}

static void put_text(struct writing *w, size_t y, const char *text)
{
    tn_text_print(&w->out, "<text x=\"0\" y=\"%zu\">", y);
    put_escaped(w, text);
    tn_text_print(&w->out, "</text>\n");
}

static void put_bar(struct writing *w, size_t y, const tarn_animation_bar *bar)
{
    static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7"};
    const size_t i = (size_t)(bar - w->how.bars), from = bar_width(w, bar->first),
                 to = bar_width(w, bar->last);
    const uint64_t share = 1000 * milliseconds(w->how.seconds) / cycle(w);

    tn_text_print(&w->out, "<rect x=\"0\" y=\"%zu\" height=\"%d\" width=\"%zu\" fill=\"%s\">",
                  y, BAR, to, colours[i % (sizeof colours / sizeof colours[0])]);
    if (from != to)
        tn_text_print(&w->out,
                      "<animate attributeName=\"width\" dur=\"%" PRIu64 "ms\" "
                      "repeatCount=\"indefinite\" keyTimes=\"0;0.%03" PRIu64 ";1\" "
                      "values=\"%zu;%zu;%zu\"/>",
                      cycle(w), share, from, to, to);
    tn_text_print(&w->out, "</rect>\n");
}

static void put_bars(struct writing *w)
{
    size_t y = grid_height(w) + LINE;

    if (w->how.caption) {
        put_text(w, y, w->how.caption);
        y += LINE;
    }
    for (size_t i = 0; i < w->how.bar_count; i++, y += 2 * LINE) {
        put_text(w, y, w->how.bars[i].label);
        put_bar(w, y + LINE / 3, &w->how.bars[i]);
    }
}

/* ---- The file ----------------------------------------------------------- */

static void put_head(struct writing *w)
{
    const size_t lines = (w->how.caption != NULL) + 2 * w->how.bar_count;
    const size_t width = grid_width(w), height = grid_height(w) + LINE * lines;

    tn_text_print(&w->out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%zu\" height=\"%zu\" "
                  "viewBox=\"0 0 %zu %zu\" role=\"img\">\n",
                  width, height, width, height);
    tn_text_print(&w->out, "<title>Images drawn pixel by pixel</title>\n");
    tn_text_print(&w->out, "<style>text{font:15px system-ui,sans-serif;fill:#57606a}"
                           "@media(prefers-color-scheme:dark){text{fill:#9da7b1}}</style>\n");
}

static tarn_status write_all(struct writing *w, const struct tn_text *png, const char *path)
{
    put_head(w);
    define_cover(w);
    put_images(w, png);
    put_bars(w);
    tn_text_print(&w->out, "</svg>\n");
    const tarn_status status =
        w->out.failed
            ? tn_fail_path(w->err, TARN_ENOMEM, path, "not enough memory for the animation")
            : tn_file_write(path, w->out.data, w->out.used, w->err);

    tn_text_free(&w->out);
    return status;
}

static tarn_status check_bars(const tarn_animation *how, tarn_error *err)
{
    for (size_t i = 0; i < how->bar_count; i++) {
        const tarn_animation_bar *const bar = &how->bars[i];

        if (!bar->label || !(bar->first >= 0.0) || !(bar->last >= 0.0) ||
            !isfinite(bar->first) || !isfinite(bar->last))
            return tn_fail(err, TARN_EINVAL,
                           "bars[%zu] needs a label and finite lengths of at least 0", i);
    }
    return TARN_OK;
}

/* After the PNG was made, which shows that count, columns and size make sense. */
static tarn_status check(const struct writing *w)
{
    const tarn_animation *const how = &w->how;

    if (!(how->seconds >= 1.0) || how->seconds > 3600.0)
        return tn_fail(w->err, TARN_EINVAL, "seconds must be from 1 to 3600, or 0 for 8");
    if (how->scale > SIDE_MOST || grid_width(w) > SIDE_MOST || grid_height(w) > SIDE_MOST)
        return tn_fail(w->err, TARN_EINVAL,
                       "%zu images in %zu columns at scale %zu exceed %d pixels a side; draw "
                       "fewer images",
                       w->count, w->across, how->scale, SIDE_MOST);
    return check_bars(how, w->err);
}

tarn_status tarn_svg_write(const char *path, const unsigned char *pixels, tarn_image_size size,
                           size_t count, size_t columns, const tarn_animation *animation,
                           tarn_error *err)
{
    static const tarn_animation plain;
    struct writing w = {
        .err = err,
        .size = size,
        .count = count,
        .across = tn_min(count, columns),
        .how = animation ? *animation : plain,
    };
    struct tn_text png;
    tarn_status status = tn_png_grid(&png, path, pixels, size, count, columns, err);

    w.how.scale = w.how.scale ? w.how.scale : SCALE;
    w.how.seconds = w.how.seconds != 0.0 ? w.how.seconds : draw_seconds;
    if (status == TARN_OK && (status = check(&w)) == TARN_OK)
        status = write_all(&w, &png, path);
    tn_text_free(&png);
    return status;
}
