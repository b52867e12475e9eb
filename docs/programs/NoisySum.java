// A server: the sum of the values in a CSV file, clipped to [0, 1], plus Laplace noise.
// Run: java NoisySum.java SCALE
import java.io.*;
import java.nio.file.*;
import java.util.*;
import java.util.regex.*;
import java.util.stream.*;

public class NoisySum {
    static final Pattern REQUEST = Pattern.compile(
        "\\{\"data\": \"(.*)\", \"draws\": (\\d+), \"seed\": (\\d+)\\}");

    static String answer(String line, double scale) throws IOException {
        Matcher request = REQUEST.matcher(line);
        if (!request.matches()) return "{\"error\": \"the request is not understood\"}";
        double sum = Files.lines(Path.of(request.group(1))).skip(1)
            .mapToDouble(row -> Double.parseDouble(row.split(",")[1]))
            .map(x -> Math.min(Math.max(x, 0), 1)).sum();
        SplittableRandom random = new SplittableRandom(Long.parseLong(request.group(3)));
        return Stream.generate(() -> Math.log((1 - random.nextDouble()) / (1 - random.nextDouble())))
            .limit(Long.parseLong(request.group(2))).map(noise -> "" + (sum + scale * noise))
            .collect(Collectors.joining(", ", "{\"draws\": [", "]}"));
    }

    public static void main(String[] args) throws IOException {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = input.readLine()) != null;)
            System.out.println(answer(line, Double.parseDouble(args[0])));
    }
}
